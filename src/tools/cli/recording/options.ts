import type { Command } from 'commander'
import { manifests, natsServer, outputFormat } from '../shared/options.ts'
import type { OutputFormat } from '../shared/output.ts'
import type { RecordingOptions } from './recording.ts'

/** The options of every command that reads a state without running a gateway. */
export type OfflineOptions = RecordingOptions & { readonly output: OutputFormat }

export function addOfflineOptions(command: Command): Command {
  return command
    .addOption(manifests())
    .option('--log-file <path>', 'event log file, or an export of one')
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .addOption(outputFormat())
}
