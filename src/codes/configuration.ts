import type { Explanation } from './explanation.ts';

/** Mistakes in files, found before anything starts. */
export const configurationErrors = {
  'settings-missing': {
    meaning: 'The command line names no settings file, and thresher found none in the usual places.',
    remedy: 'Name one with `--config`, or put it into one of the places of the message.',
  },
  'settings-ambiguous': {
    meaning: 'The command line names no settings file, and Harvester has several, which it merges.',
    remedy: 'Name with `--config` the file that holds the values for thresher.',
  },
  'environment-missing': {
    meaning: 'A setting names a variable that is not set in the environment.',
    remedy: 'Set the variable for the daemon, or write the value itself.',
  },
  'environment-replaces-all': {
    meaning: 'A variable stands for a whole value, so thresher drops the text beside it, as Harvester does.',
    remedy: 'Write the value itself.',
  },
  'template-placeholder': {
    meaning: "A value is still the `FIXME` of Harvester's template.",
    remedy: 'Write the value of your site.',
  },
  'panda-server-off': {
    meaning:
      'The settings name a PanDA server or a login for one, and something is missing: thresher runs without the link to it. Queues that the server would serve get no workers.',
    remedy: 'Write the key of `pandacon` that the message names. docs/panda.md shows a whole section.',
  },
  'panda-doubtful': {
    meaning:
      'A setting of the PanDA server, or a file of its login, is not what the server usually takes. The link starts with it all the same, and reads files again when they change.',
    remedy: 'Correct the key of `pandacon` that the message names. docs/panda.md shows a whole section.',
  },
  'harvester-id-missing': {
    meaning:
      'The settings name a PanDA server, and no `master.harvester_id`: the server gets a name that it may not know, and then orders nothing.',
    remedy: 'Write the value of `harvester` that the queues have in CRIC.',
  },
  'panda-not-verified': {
    meaning:
      "`ca_cert` asks for no check of the PanDA server's certificate, as Harvester grants it. thresher checks it all the same, with the authorities of the system.",
    remedy: 'Name in `ca_cert` the file of the authority (PEM) that signed the certificate of the server.',
  },
  'quoted-value': {
    meaning: 'A value of panda_harvester.cfg has quotes, which are part of the value there.',
    remedy: 'Remove the quotes.',
  },
  'unread-setting': {
    meaning: 'panda_harvester.cfg has a section or key that Harvester reads and thresher does not.',
    remedy: 'A notice needs no action; a warning says where thresher differs from Harvester.',
  },
  'queue-file-place': {
    meaning: 'The queue file is not beside panda_harvester.cfg, or Harvester reads another one.',
    remedy: 'Write the path of `qconf.configFile` in full.',
  },
  'file-unreadable': {
    meaning:
      'A file or directory that the configuration names does not exist or may not be read; a queue that needs it is incomplete.',
    remedy: 'Check the path (relative paths count from the file that names them) and its permissions.',
  },
  syntax: {
    meaning: 'A file is not valid JSON or YAML, or Python could not read this panda_harvester.cfg.',
    remedy: 'Fix the line of the message; for JSON, look for a missing comma or quote just before it.',
  },
  'duplicate-key': {
    meaning:
      'A JSON object has the same key twice: the last one counts, as in Harvester. If both have the same value, it is a notice. In panda_harvester.cfg it is an error, as in Harvester.',
    remedy: 'Remove the wrong one.',
  },
  'wrong-type': {
    meaning: 'A value has the wrong type or is out of bounds.',
    remedy: 'Write the value that the message asks for.',
  },
  'unknown-setting': {
    meaning: 'The settings have a key that this version does not know.',
    remedy: 'Look for a spelling mistake; docs/configuration.md lists all keys.',
  },
  'cacher-item': {
    meaning: 'An item of `cacher.data` is wrong or not needed, or one that other settings need is missing.',
    remedy: 'Write it as `key|subkey|URL|dump file`. A notice needs no action.',
  },
  'cache-missing': {
    meaning:
      'A file that `cacher.data` names was never fetched. Queues that may depend on it are incomplete until it is there.',
    remedy:
      'Fetch it with `thresher cacher refresh`, as the user of the daemon: it says why where it cannot. A running daemon tries by itself.',
  },
  'cache-damaged': {
    meaning: 'A file of the cacher in the state directory cannot be read, or is not as thresher wrote it.',
    remedy: 'Fetch it again with `thresher cacher refresh`.',
  },
  'cache-login': {
    meaning:
      'A login of ours is in the name of an entry of a fetched file: its server sends back how it was asked. The entry is left out, since the name of a queue is shown everywhere.',
    remedy: 'Tell those who run the server, and give thresher another login: others may have seen this one.',
  },
  'cache-form': {
    meaning:
      'A file that the cacher fetched is not of the form that its key promises: no JSON, half a file, or one without any queue. The last good one counts.',
    remedy: 'Open the URL by hand, and name the right one.',
  },
  'cache-shrunk': {
    meaning:
      'A file that the cacher fetched has less than half the entries of the one before, or of those that CRIC gives to this instance. The one before counts on: the server may have answered with a part of the list.',
    remedy:
      'Open the URL by hand. If the new list is right, remove the file that the message names, and run `thresher cacher refresh`.',
  },
  'cache-dump': {
    meaning:
      'The cacher cannot write the dump file of an item, which other programs read. thresher itself has the new content.',
    remedy: 'Check the directory of the dump file, its owner and the space on its disk.',
  },
  'cric-template': {
    meaning: 'CRIC gives this instance a queue, and no template for it is there.',
    remedy:
      'Write a template of the name that the message says, or set `harvester_template` in CRIC, or `qconf.defaultTemplateQueueName`.',
  },
  'unread-option': {
    meaning:
      'A queue has an option that neither thresher nor Harvester reads. thresher keeps it without any effect, and warns if it looks like a spelling mistake.',
    remedy: 'Remove it, or correct its spelling.',
  },
  'submit-command-added': {
    meaning:
      '`submitCommands` lets third parties give jobs a command or attribute that thresher does not allow by itself; the message says what it may do.',
    remedy:
      'Keep it if everyone who may give jobs to the queue may have its effect; else take it out. The lists of what every job may have: docs/htcjob.md.',
  },
  'option-without-effect': {
    meaning:
      'A queue has an option of Harvester that does nothing in thresher. thresher warns if the queue therefore behaves differently than with Harvester.',
    remedy: 'A notice needs no action; a warning says where thresher differs from Harvester.',
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
    remedy: 'Put what they share into an entry with `"isTemplateQueue": true` and no template of its own.',
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
    meaning: 'No plugin has this `module` and `name`.',
    remedy: 'Check the spelling; docs/configuration.md lists all plugins.',
  },
  'plugin-not-there': {
    meaning: 'The queue needs a plugin of Harvester that thresher does not have (yet): it is incomplete.',
    remedy:
      'Run the queue with Harvester for now; docs/configuration.md lists all plugins, and docs/plugins.md shows how to write one.',
  },
  'plugin-dropped': {
    meaning:
      'The queue needs a plugin that Harvester itself dropped, and thresher will not have it either: the queue is incomplete.',
    remedy:
      'Name another plugin, or remove the queue; docs/configuration.md lists all plugins, and docs/plugins.md shows how to write one.',
  },
  'plugin-not-needed': {
    meaning: 'A pull queue names a plugin that moves data of pushed jobs; thresher ignores it.',
    remedy: 'Nothing to do.',
  },
  'credmanager-dropped': {
    meaning: "Harvester's lists of credential managers differ in length: the shortest counts, as there.",
    remedy: 'Write one line for each manager in every list, with `dummy` if the manager needs no value.',
  },
  'credmanager-not-applied': {
    meaning:
      "thresher does not have a credential manager that the settings name (one of Harvester's) or a queue names (a third party's). It runs the others. Harvester's Dummy has nothing to do and gets no remark.",
    remedy: 'Renew its proxies, tokens and Secrets by other means, such as cron.',
  },
  'plugin-not-loaded': {
    meaning:
      'thresher could not import the module of a third-party plugin, or the module exports no matching definition.',
    remedy:
      'See docs/plugins.md: the module must export the result of definePlugin(), defineBackend() or defineSource().',
  },
  'unknown-source': {
    meaning: '`demand`, `submitter.defaultDemand` or `sources` names a source that does not exist.',
    remedy:
      'Check the spelling. A source of a third party needs its `module`, in the section `demand` of the queue or in `sources` of the settings.',
  },
  'source-name-taken': {
    meaning: 'Two sources have the same name, by which workers know who asked for them.',
    remedy: 'Give one of them another name, or name the same module in all places.',
  },
  'payload-unsupported': {
    meaning:
      'A source gives its workers a payload with a part (values, files, argv, env) that the backend of the queue cannot pass on to them. A request with one gets no worker; others of the source do.',
    remedy:
      'Name another source as `demand` of the queue, or another backend as its `submitter`; or ask without that part.',
  },
  'plugin-outdated': {
    meaning:
      'A third-party backend was written for an earlier version: its module exports a submitter, monitor or sweeper that definePlugin() returned.',
    remedy:
      'Define the backend by defineBackend(), as docs/plugins.md shows: `connect` replaces the three functions `create`, and `host` of the connection replaces `context.share` and `context.connection`.',
  },
  'throttler-without-rules': {
    meaning: 'The queue names a throttler without any rules.',
    remedy: 'Add `rulesForMissed`, or another list of rules; or remove the section.',
  },
  'size-not-said': {
    meaning:
      'A template asks for memory, disk or wall time of a worker, but the queue does not set it: the backend would get next to nothing. A pull queue on HTCondor is incomplete; any other queue gets a warning.',
    remedy:
      "Set `minRamCount`, `maxDiskCount` or `maxWalltime` in the submitter's section, or remove the line from the template.",
  },
  'file-not-said': {
    meaning:
      'A template of HTCondor names a file (its program, the proxy, a token, an image, files to be transferred) by an option that the queue does not have. HTCondor would refuse or hold every job: the queue is incomplete.',
    remedy: "Set the option in the submitter's section, or remove the line from the template.",
  },
  'ce-list-missing': {
    meaning:
      'The queue sends its workers to the CEs of CRIC, which names none that is active, or is not read, and the queue lists none itself: it is incomplete.',
    remedy:
      'Add `panda_queues.json` to `cacher.data` of the settings, correct the entry in CRIC, or list the CEs in `ceList` of the submitter\'s section: `[{"ce_endpoint": "HOST:PORT", "ce_flavour": "htcondor-ce"}]`.',
  },
  'cric-value-wrong': {
    meaning:
      'A value of the queue in CRIC has the wrong form, or lacks what the queue needs: the queue goes on without it. Or a whole entry is too large (1,000,000 characters, 10,000 values), and is left out.',
    remedy: "Correct it in CRIC, or write the option into the queue's entry of the queue file.",
  },
  'cric-not-there': {
    meaning: 'The queue asks for CRIC (`useCRIC`), which has no entry for it.',
    remedy: 'Look for the name of the queue in CRIC, or set the option to `false`.',
  },
  'cric-value-differs': {
    meaning: 'CRIC and the queue file say different things, and Harvester takes the one of CRIC.',
    remedy: 'Remove the option from the queue file if CRIC is right.',
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
    meaning: 'The API server of a queue did not answer (`check-config --server`).',
    remedy: 'See the message; check the kubeconfig and the network.',
  },
  'throttler-rule-idle': {
    meaning:
      'A rule of a throttler never holds the queue back, because the queue does not name the computing elements that the rule counts.',
    remedy:
      'Name the endpoints of the CEs in `computingElements` of the submitter, or use a rule of level `site` or `pq`.',
  },
  'doubtful-value': {
    meaning: 'A value is allowed, but has no meaning or probably not the intended one.',
    remedy: 'Look for a spelling mistake; docs/configuration.md lists the values.',
  },
  'connection-not-shared': {
    meaning: 'Submitter, monitor and sweeper of a queue use different endpoints.',
    remedy: 'Put the options that name the endpoint (such as `workDir`) into `common`.',
  },
  'unknown-placeholder': {
    meaning:
      'A template or an `accessPoint` uses a `${placeholder}` that does not exist. An `accessPoint` keeps its text as it is, with a warning.',
    remedy: 'Use a known one (docs/configuration.md), or write `$${` for a literal `${`.',
  },
  'access-point-shared': {
    meaning:
      'The `accessPoint` has no `${workerID}`, so all workers share the directory, and thresher never removes it.',
    remedy: 'Put `${workerID}` into its last component.',
  },
  'template-wrong': {
    meaning: 'A worker template does not have the form that its backend expects.',
    remedy: 'See the message; templates/ has working ones.',
  },
  'template-risky': {
    meaning:
      'A worker template has an effect that is wrong for a worker: several Pods of one worker, or a part that thresher replaces.',
    remedy: 'Write the value that the message asks for.',
  },
  'variable-passed': {
    meaning:
      'A submit description names a variable of the environment (`$ENV(NAME)`, `getenv`), and the daemon passes this variable to `condor_submit`.',
    remedy: 'None needed.',
  },
} as const satisfies Record<string, Explanation>;
