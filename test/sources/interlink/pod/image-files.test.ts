import { expect } from 'chai';
import type { PlanContext } from '../../../../src/sources/interlink/pod/plan.ts';
import { linesOf, planned, podData } from '../../../support/pods.ts';

describe('a container of a Pod sees the files of its image', () => {
  it('with a root file system that can be written, unless its container or the operator says otherwise', () => {
    const options = (
      readOnly: boolean | undefined,
      context: Partial<PlanContext> = { readOnlyImages: false },
    ) => {
      const securityContext = { ...(readOnly !== undefined && { readOnlyRootFilesystem: readOnly }) };
      return linesOf(planned(podData({ securityContext }), context), 'c0', 'option');
    };
    expect(options(undefined)).to.deep.equal(['--writable-tmpfs']);
    expect(options(true)).to.deep.equal([]);
    expect(options(undefined, { readOnlyImages: true })).to.deep.equal([]);
    expect(options(false, { readOnlyImages: true })).to.deep.equal(['--writable-tmpfs']);
    expect(options(undefined, { readOnlyImages: false, options: ['--overlay', '/x'] })).to.deep.equal([
      '--overlay',
      '/x',
    ]);
  });

  it('names in a warning a program or a file that is named from the directory of an image', () => {
    const warned = (command: string[], workingDir?: string, image = '/cvmfs/unpacked/x') =>
      planned(podData({ image, command, ...(workingDir !== undefined && { workingDir }) })).warnings;
    expect(warned(['python', 'app.py'])).to.deep.equal([
      'container main starts in "/", whatever directory its image names: if "app.py" is not there, set workingDir',
    ]);
    expect(warned(['./run'])).to.have.length(1);
    expect(warned(['python', 'app.py'], '/app')).to.deep.equal([]);
    // The job finds the directory in the file that apptainer makes of the image.
    for (const image of ['docker://x', '/cvmfs/x.sif'])
      expect(warned(['python', 'app.py'], undefined, image)).to.deep.equal([]);
    expect(warned(['/bin/sh', '-c', 'python app.py', 'sh', '/app.py', 'docker://x/y'])).to.deep.equal([]);
  });

  it('but for the image "host": its command has no volume and no option of apptainer', () => {
    const container = { image: 'host', volumeMounts: [{ name: 'v', mountPath: '/v' }] };
    const data = podData(
      { ...container, terminationMessagePath: '/dev/termination-log' },
      {
        volumes: [{ name: 'v', emptyDir: {} }],
      },
    );
    const plan = planned(data, { host: true, readOnlyImages: false, options: ['--nv'] });
    for (const key of ['option', 'bind', 'says']) expect(linesOf(plan, 'c0', key), key).to.deep.equal([]);
    expect(plan.warnings).to.deep.equal(['container main runs on the machine, without its volumes: v']);
  });
});
