export interface NeededCase {
  readonly what: string;
  readonly text: string;
  /** Whether `condor_submit` refuses the text where the program is not there. */
  readonly looksFor: boolean;
}

/** Submit texts with an absolute path, and whether `condor_submit` looks for it: a test asks the real one. */
export function neededCases(program: string): readonly NeededCase[] {
  const executable = `executable = ${program}\n`;
  const row = (what: string, text: string, looksFor: boolean): NeededCase => ({ what, text, looksFor });
  const grid = 'universe = grid\ngrid_resource = condor ce ce:9619\n';
  const docker = 'universe = docker\ndocker_image = sl9\n';
  const container = 'universe = container\ncontainer_image = docker://sl9\n';
  return [
    row('in the vanilla universe', executable, true),
    row('in the parallel universe', `universe = parallel\nmachine_count = 1\n${executable}`, true),
    row('in the grid universe', `${grid}${executable}`, true),
    row(
      'in the grid universe without a transfer',
      `${grid}${executable}transfer_executable = false\n`,
      false,
    ),
    row('where it is not transferred', `${executable}transfer_executable = False\n`, false),
    row('where nothing else is transferred', `${executable}should_transfer_files = NO\n`, true),
    row('where its transfer is asked for', `${executable}transfer_executable = true\n`, true),
    row('where "no" stands for false', `${executable}transfer_executable = no\n`, true),
    row('in the image of docker', `${docker}${executable}`, false),
    row('in the image of a container', `${container}${executable}`, false),
    row('in the image of a vanilla job', `container_image = docker://sl9\n${executable}`, false),
    row('where it is brought to docker', `${docker}${executable}transfer_executable = true\n`, true),
    row('where checks are skipped', `${executable}skip_filechecks = true\n`, true),
  ];
}
