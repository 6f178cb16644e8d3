import type { Explanation } from '../../codes/explanation.ts';

/** Codes of the links in the chain from the idle jobs of a pool to the workers of a queue. */
export const decideReasons = {
  'htcondor-idle-jobs': {
    meaning:
      'So many idle jobs of the pool count: a negotiation cycle has passed over them, and they found no slot.',
    remedy: 'Nothing is to be done.',
    ordinary: true,
  },
  'htcondor-idle-no-match': {
    meaning:
      'HTCondor says that these jobs and the machines of the queue do not match: the requirements of one of them refuse the other.',
    remedy:
      'Nothing is to be done where other queues or slots take them. `thresher pool unservable` names the conditions of jobs that nothing takes.',
    ordinary: true,
  },
  'htcondor-idle-limited': {
    meaning: 'The jobs wait for a concurrency limit: more machines would not start them.',
    remedy: 'Raise the limit (`NAME_LIMIT` of the negotiator), or wait for the jobs that hold it.',
  },
  'htcondor-idle-fitting': {
    meaning: 'Free slots of the pool, and workers that are on their way, take these jobs.',
    remedy: 'Nothing is to be done. If such jobs stay idle, see `condor_q -better-analyze`.',
    ordinary: true,
  },
  'htcondor-idle-elsewhere': {
    meaning: 'Cheaper workers of other queues take these jobs. Each job counts once.',
    remedy: 'Lower `cost` of the shape if this queue is to be preferred.',
    ordinary: true,
  },
  'htcondor-idle-packed': {
    meaning: 'So many whole machines hold the jobs that are left.',
    remedy: 'Nothing is to be done.',
    ordinary: true,
  },
  'htcondor-idle-takes-over': {
    meaning: 'The queue takes jobs of cheaper shapes that are at a limit.',
    remedy: 'Nothing is to be done; raise the limit of the cheaper shape if it is to have them.',
    ordinary: true,
  },
  'htcondor-idle-most': {
    meaning: 'As many workers of the shape or queue live as its `most` allows.',
    remedy: 'Raise `most`, or wait until workers end.',
  },
  'htcondor-idle-late': {
    meaning:
      'Workers of the shape run and have not joined the pool within `joinTimeout`. While they live, no more workers of the shape are on their way than have joined; one may always try.',
    remedy:
      'See `htcondor-idle-not-joined` for the cause, and end the late ones with `thresher kill ID`. If they run jobs of the pool, their image lacks the `Thresher...` attributes of the machine (`STARTD_ATTRS`), by which thresher knows them.',
  },
  'htcondor-idle-none-pending': {
    meaning: 'Workers of the queue do not run yet, and `nonePending` is set: it gets new ones once they do.',
    remedy: 'Wait; `thresher workers` shows what the workers wait for.',
    ordinary: true,
  },
  'htcondor-idle-pressure': {
    meaning: 'As many workers of the queue wait for their start as its `pressure` allows.',
    remedy: 'Wait until some of them run, or raise `least` or `share` of `pressure`.',
    ordinary: true,
  },
  'htcondor-idle-per-cycle': {
    meaning: 'The queue gets no more than `perCycle` workers at each look. The rest follows at the next.',
    remedy: 'Wait, or raise `perCycle`.',
    ordinary: true,
  },
} as const satisfies Record<string, Explanation>;

export type DecideCode = keyof typeof decideReasons | 'htcondor-idle-unknown';
