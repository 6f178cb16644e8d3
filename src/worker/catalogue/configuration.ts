import type { Explanation } from './explanation.ts';

/** Mistakes in files, found before anything starts. */
export const configurationErrors = {
  'settings-missing': {
    meaning: 'No settings file was named, and there is none in the places where one is looked for.',
    remedy: 'Name it with `--config`, or put it into one of the places of the message.',
  },
  'settings-ambiguous': {
    meaning: 'No settings file was named, and Harvester has several, which it puts together.',
    remedy: 'Name with `--config` the one that holds what thresher needs.',
  },
  'environment-missing': {
    meaning: 'A setting names a variable that the environment does not have.',
    remedy: 'Set it where the daemon is started, or write the value itself.',
  },
  'environment-replaces-all': {
    meaning: 'A variable stands for a whole value, so text beside it is dropped, as in Harvester.',
    remedy: 'Write the value itself.',
  },
  'template-placeholder': {
    meaning: "A value is still the `FIXME` of Harvester's template.",
    remedy: 'Write what your site has.',
  },
  'quoted-value': {
    meaning: 'A value of panda_harvester.cfg stands in quotes, which belong to it there.',
    remedy: 'Remove the quotes.',
  },
  'unread-setting': {
    meaning: 'panda_harvester.cfg has a section or key that Harvester reads and thresher does not.',
    remedy: 'Nothing, where it is a notice; a warning says what is done otherwise than by Harvester.',
  },
  'queue-file-place': {
    meaning: 'The queue file of panda_harvester.cfg is elsewhere than beside it, or Harvester reads another.',
    remedy: 'Write the path of `qconf.configFile` in full.',
  },
  'file-unreadable': {
    meaning:
      'A file or directory that the configuration names does not exist or may not be read; a queue that needs it is incomplete.',
    remedy: 'Check the path (relative paths count from the file that names them) and its permissions.',
  },
  syntax: {
    meaning: 'A file is not valid JSON or YAML, or panda_harvester.cfg not what Python reads.',
    remedy: 'Mend the place named; for JSON, look for a missing comma or quote just before it.',
  },
  'duplicate-key': {
    meaning:
      'A JSON object has the same key twice: the last one counts, as in Harvester; a notice where both have the same value. In panda_harvester.cfg it is an error, also as there.',
    remedy: 'Remove the one that is not meant.',
  },
  'wrong-type': {
    meaning: 'A value has the wrong type or is out of bounds.',
    remedy: 'Write what the message asks for.',
  },
  'unknown-setting': {
    meaning: 'The settings have a key that this version does not know.',
    remedy: 'Look for a spelling mistake; docs/configuration.md lists all keys.',
  },
  'unread-option': {
    meaning:
      'A queue has an option that neither thresher nor Harvester reads. It is kept and has no effect. A warning where it looks like a slip of the pen.',
    remedy: 'Remove it, or look for a spelling mistake.',
  },
  'option-without-effect': {
    meaning:
      'A queue has an option that Harvester reads, or that thresher accepts for its sake, and that does nothing here. A warning where the queue behaves otherwise than with Harvester.',
    remedy: 'Nothing, where it is a notice; a warning says what thresher does otherwise.',
  },
  'unknown-template-queue': {
    meaning: '`templateQueueName` names a queue that is not in the file.',
    remedy: 'Name an existing entry, or remove `templateQueueName`.',
  },
  'unknown-queue': {
    meaning: '`qconf.queueList` names a queue that is not in the queue file.',
    remedy: 'Look for a spelling mistake, or remove the name.',
  },
  'implicit-template': {
    meaning:
      'A queue is used as a template without saying so; it counts as one and submits nothing itself. A warning where it looks like a queue that is to run.',
    remedy: 'Add `"isTemplateQueue": true` to it, or end its name in `_TEMPLATE`.',
  },
  'template-circle': {
    meaning: 'Queues name each other, or themselves, as templates: none of them can be merged.',
    remedy:
      'Put what they have in common into an entry with `"isTemplateQueue": true` and no template of its own.',
  },
  'nested-template': {
    meaning: 'A template names a template of its own, which is not followed, as in Harvester.',
    remedy: 'Copy the options into the template itself.',
  },
  'missing-section': {
    meaning: 'A queue has no section for a plugin it cannot do without.',
    remedy: 'Add the section with `name` and `module`.',
  },
  'unknown-plugin': {
    meaning: 'No plugin goes by this `module` and `name`.',
    remedy: 'Check the spelling; docs/plugins.md lists what there is.',
  },
  'plugin-not-there': {
    meaning: 'The queue needs a plugin of Harvester that thresher does not have (yet): it is incomplete.',
    remedy:
      'Run the queue with Harvester for now; docs/plugins.md lists what there is, and how to write one.',
  },
  'plugin-not-needed': {
    meaning: 'A pull queue names a plugin that moves data of pushed jobs; it is ignored.',
    remedy: 'Nothing to do.',
  },
  'credmanager-dropped': {
    meaning:
      "Harvester's lists of credential managers are not equally long: as in Harvester the shortest counts.",
    remedy: 'Write one line for each manager in every list, `dummy` where it needs nothing.',
  },
  'credential-targets-missing': {
    meaning:
      'A manager of tokens is for the computing elements that CRIC names, and thresher does not read CRIC: it is incomplete.',
    remedy: 'Name the endpoints in `target_list` or `target_list_file`.',
  },
  'credmanager-not-applied': {
    meaning:
      "The settings name a credential manager of Harvester, or a queue one of a third party, that thresher does not have: it does not run. The others do. Harvester's Dummy has nothing to do and gets no remark.",
    remedy: 'Keep its proxies, tokens and Secrets fresh by other means, such as cron.',
  },
  'plugin-not-loaded': {
    meaning: "A third-party plugin's module could not be imported, or exports no matching definition.",
    remedy: 'See docs/plugins.md: the module must export what definePlugin() returned.',
  },
  'throttler-without-rules': {
    meaning: 'The queue names a throttler and gives it no rules.',
    remedy: 'Add `rulesForMissed`, or another list of rules; or remove the section.',
  },
  'size-not-said': {
    meaning:
      'A template asks for memory, disk or wall time of a worker, and the queue does not say it: the backend would get next to nothing. A pull queue on HTCondor is incomplete; elsewhere it is a warning.',
    remedy:
      "Set `minRamCount`, `maxDiskCount` or `maxWalltime` in the submitter's section, or take the line out of the template.",
  },
  'ce-list-missing': {
    meaning:
      'The queue sends its workers to CEs that Harvester would take from CRIC, and names none itself: it is incomplete.',
    remedy:
      'List the CEs in `ceList` of the submitter\'s section, as CRIC does: `[{"ce_endpoint": "HOST:PORT", "ce_flavour": "htcondor-ce"}]`.',
  },
  'ce-not-from-cric': {
    meaning:
      'The queue has `ceEndpoint` or `ceHostname` beside `useCRICGridCE`. They count here; Harvester ignores them and takes the CEs of CRIC.',
    remedy: 'Write the CEs of CRIC into `ceList`, or set `useCRICGridCE` to `false` where these are meant.',
  },
  'server-refused': {
    meaning: 'The API server would refuse the Job of this queue (`check-config --server`).',
    remedy: 'Change the template or the options of the queue as the message says.',
  },
  'server-warned': {
    meaning: 'The API server would take the Job of this queue, with a warning (`check-config --server`).',
    remedy: 'See the message; often a field that a later version of Kubernetes no longer has.',
  },
  'server-unknown': {
    meaning: 'The API server of a queue could not be asked (`check-config --server`).',
    remedy: 'See the message; check the kubeconfig and the network.',
  },
  'throttler-rule-idle': {
    meaning:
      'A rule of a throttler never holds anything back, because the queue does not say what it would count.',
    remedy:
      'Name the endpoints of the CEs in `computingElements` of the submitter, or use a rule of level `site` or `pq`.',
  },
  'doubtful-value': {
    meaning: 'A value is allowed and means nothing, or not what was probably meant.',
    remedy: 'Look for a spelling mistake; docs/configuration.md says what there is.',
  },
  'connection-not-shared': {
    meaning: 'Submitter, monitor and sweeper of a queue do not look at the same place.',
    remedy: 'Put the options that say where (such as `workDir`) into `common`.',
  },
  'unknown-placeholder': {
    meaning:
      'A template or an `accessPoint` uses a `${placeholder}` that does not exist. In an `accessPoint` it stays as it is written, with a warning.',
    remedy: 'Use a known one (docs/configuration.md), or write `$${` for a literal `${`.',
  },
  'access-point-shared': {
    meaning:
      'The `accessPoint` has no `${workerID}`, so all workers share the directory; it is never removed.',
    remedy: 'Put `${workerID}` into its last component.',
  },
  'template-wrong': {
    meaning: 'A worker template is not what its backend expects.',
    remedy: 'See the message; templates/ has working ones.',
  },
  'template-risky': {
    meaning:
      'A worker template works, but not as one worker needs it: more than one Pod of one worker, or a part that thresher replaces.',
    remedy: 'Write what the message asks for.',
  },
  'variable-passed': {
    meaning:
      'A submit description names a variable of the environment (`$ENV(NAME)`, `getenv`), and `condor_submit` gets it from the daemon.',
    remedy: 'None is needed.',
  },
} as const satisfies Record<string, Explanation>;
