import type { LoadedSettings } from '../config/settings/settings.ts';
import type { RunConfiguration } from './configuration.ts';
import type { Credentials } from './credentials/credentials.ts';
import { QueueService, type QueueServiceParts } from './services/queue-service.ts';
import type { Service } from './services/service.ts';
import type { SourceService } from './services/source-service.ts';

export interface DaemonServices {
  readonly settings: LoadedSettings;
  readonly credentials: Credentials;
  readonly queues: QueueServiceParts;
  /** Those that the caller of the daemon brings: HTTP. */
  readonly beside: readonly Service[];
  readonly sources: SourceService;
  readonly cacher: Service;
}

/**
 * All services of a daemon, in the order in which they begin and are reloaded. Queues come after the credentials that they wait for,
 * the cacher after the queues that it renews, HTTP after the queues that it shows, and sources after everything that they may ask.
 */
export function servicesOf({
  settings,
  credentials,
  queues,
  cacher,
  beside,
  sources,
}: DaemonServices): Service[] {
  return [
    credentialService(credentials, settings, queues.read),
    new QueueService(queues),
    cacher,
    ...beside,
    sources,
  ];
}

/** Its loops end with those of the queues. */
function credentialService(
  credentials: Credentials,
  settings: LoadedSettings,
  first: RunConfiguration,
): Service {
  const takeUp = (read: RunConfiguration) => credentials.takeUp(settings, read);
  const name = 'credentials';
  return {
    name,
    required: true,
    begin: () => takeUp(first),
    reload: takeUp,
    stop: async () => undefined,
    health: () => [{ name }],
  };
}
