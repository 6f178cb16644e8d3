import type { LoadedSettings } from '../config/settings/settings.ts';
import { factoryMistake } from '../daemon/factory-file.ts';
import { httpMistake } from '../http/server.ts';
import type { OperatorFiles } from '../util/operator-files.ts';
import type { Problem } from '../util/located.ts';
import { whyNoDirectory, whyNoFile } from '../util/writable.ts';
import type { ErrorCode } from '../codes/codes.ts';

/**
 * The reasons for which a daemon with these settings would not start, as far as they can be seen without one. The check
 * writes nothing. A file that this user may not look at counts as right: the daemon's user may be allowed to.
 */
export async function wouldNotStart(settings: LoadedSettings, files: OperatorFiles): Promise<Problem[]> {
  const { stateDir, logFile } = settings;
  const problems: Problem[] = [];
  const found = (pointer: string, code: ErrorCode, message: string): void => {
    problems.push({ ...settings.placeOf(pointer), severity: 'error', code, message });
  };
  const noState = whyNoDirectory(stateDir);
  if (noState !== undefined) {
    const message = `the state directory ${stateDir} cannot be used: ${noState}`;
    found('/master/stateDir', 'state-dir-unusable', message);
  }
  const factory = await factoryMistake(settings);
  const isOfDatabase = factory?.code.startsWith('store-') === true;
  if (factory !== undefined)
    found(isOfDatabase ? '/database/url' : '/master/stateDir', factory.code, factory.message);
  const noLog = logFile === undefined ? undefined : whyNoFile(logFile);
  if (noLog !== undefined)
    found('/log/file', 'log-file-unusable', `the log ${logFile ?? ''} cannot be opened: ${noLog}`);
  const http = await httpMistake(settings, files);
  if (http !== undefined) found(http.pointer, http.error.code, http.error.message);
  return problems;
}
