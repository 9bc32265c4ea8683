import type { Command } from 'commander'
import { manifests, natsServer, outputFormat } from '../shared/options.ts'
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

const sources = ['file', 'logFile', 'nats', 'recordDir']

/**
 * Adds `--log-file`, whose default is the log of the running gateway, or the newest one.
 * @param others names of the options, besides `--log-file`, that name a source
 */
export function addLogFile(command: Command, others: readonly string[] = sources): Command {
  const help =
    'event log file, or an export of one (default: that of the running gateway, or the newest in the state folder)'
  return command
    .option('--log-file <path>', help)
    .hook('preAction', (_, action) => takeNewestLog(action, ['logFile', ...others]))
}

/** Sets `--log-file` to the newest log if the command line names no source at all. */
async function takeNewestLog(command: Command, names: readonly string[]): Promise<void> {
  if (names.some((name) => command.getOptionValue(name) !== undefined)) return
  // The providers of running proxies are in no log, and the argument of `console` is an export.
  const isOfExplain = command.name() === 'explain' && command.args[0] === 'providers'
  if (isOfExplain || (command.name() === 'console' && command.args.length > 0)) return
  const { newestLog } = await import('./newest-log.ts')
  command.setOptionValue('logFile', newestLog(processOutput.report))
}
