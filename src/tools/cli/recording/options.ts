import type { Command } from 'commander'
import { manifests, natsServer, outputFormat, type RecordFolder } from '../shared/options.ts'
import { type OutputFormat, processOutput } from '../shared/output.ts'
import type { RecordingOptions } from './recording.ts'

/** The options of every command that reads a state without running a gateway. */
export type OfflineOptions = RecordingOptions & { readonly output: OutputFormat }

export function addOfflineOptions(command: Command): Command {
  return addLogFile(command.addOption(manifests()))
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .addOption(outputFormat())
}

/** Adds `--log-file`, whose default is the newest log. */
export function addLogFile(command: Command): Command {
  const help = 'event log file, or an export of one (default: the newest log in the state folder)'
  return command
    .option('--log-file <path>', help)
    .hook('preAction', (_, action) => takeNewestLog(action))
}

/** Sets `--log-file` to the newest log if the command line names no source at all. */
async function takeNewestLog(command: Command): Promise<void> {
  const { file, logFile, nats, recordDir } = command.opts<RecordingOptions & RecordFolder>()
  if ([file, logFile, nats, recordDir].some((source) => source !== undefined)) return
  // The providers of running proxies are in no log, and the argument of `console` is an export.
  if (command.args[0] === 'providers' || (command.name() === 'console' && command.args.length > 0))
    return
  const { newestLog } = await import('./newest-log.ts')
  command.setOptionValue('logFile', newestLog(processOutput.report))
}
