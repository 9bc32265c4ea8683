/** The command `sluice run` and its options. */
import { type Command, Option } from 'commander'
import { gatewayConsoleSettings } from '../../../ground/settings/console.ts'
import { settings } from '../../../ground/settings/index.ts'
import { protectionSettings } from '../../../ground/settings/protection.ts'
import { stdioSettings } from '../../../ground/settings/stdio.ts'
import { addSettings, manifests, natsServer, nonEmpty } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { RunOptions } from './run.ts'

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .description('run a gateway from manifest files')
    .addOption(manifests('manifest file or folder; may be repeated').makeOptionMandatory())
    .addOption(
      new Option('--log-file <path>', 'store the event log in this file')
        .argParser(nonEmpty)
        .conflicts(['ephemeral', 'nats']),
    )
    .addOption(
      new Option('--nats <url>', 'store the event log on a NATS server')
        .argParser(natsServer)
        .conflicts('ephemeral'),
    )
    .option('--ephemeral', 'store the event log in memory only')
  addSettings(command, {
    ...settings,
    ...protectionSettings,
    ...gatewayConsoleSettings,
    ...stdioSettings,
  }).action(async (options: RunOptions) => {
    const { run } = await import('./run.ts')
    process.exitCode = await run(options, processOutput)
  })
}
