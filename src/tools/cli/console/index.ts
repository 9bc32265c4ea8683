/** The command `sluice console` and its options. */
import type { Command } from 'commander'
import { consoleSettings } from '../../../ground/settings/console.ts'
import { addLogFile } from '../recording/options.ts'
import { addSettings, natsServer, recordDir } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { ConsoleOptions } from './console.ts'

export function addConsole(program: Command): void {
  const command = addLogFile(
    program
      .command('console [export]')
      .description('serve the web console for an event log, or for an export of one'),
  )
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .addOption(recordDir())
    .option('--no-open', 'do not open a browser')
  addSettings(command, consoleSettings).action(
    async (exportFile: string | undefined, options: ConsoleOptions) => {
      const { serveConsoleOf } = await import('./console.ts')
      process.exitCode = await serveConsoleOf(exportFile, options, processOutput)
    },
  )
}
