import type { LogServer } from '../../plugins/contracts/index.ts';
import type { Settings } from './settings-schema.ts';

/**
 * The PanDA log cache that pilots write to: the server of `pandaCacheURL` with a path for each purpose, or else two whole
 * addresses. Source: Harvester's k8s_utils and its template of panda_harvester.cfg.
 */
export function logServerOf({ pandacon }: Pick<Settings, 'pandacon'>): LogServer | undefined {
  const { pandaCacheURL, pandaCacheURL_W_path, pandaCacheURL_R_path } = pandacon;
  const onServer = (path: string | undefined) => {
    if (pandaCacheURL === undefined || path === undefined || !URL.canParse(pandaCacheURL)) return undefined;
    return `${new URL(pandaCacheURL).origin}${path}`;
  };
  const write = onServer(pandaCacheURL_W_path) ?? pandacon.pandaCacheURL_W;
  const read = onServer(pandaCacheURL_R_path) ?? pandacon.pandaCacheURL_R;
  return write === undefined || read === undefined ? undefined : { write, read };
}
