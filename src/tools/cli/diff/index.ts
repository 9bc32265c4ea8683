/** The command `sluice diff` and its options. */
import type { Command } from 'commander'
import { outputFormat } from '../shared/options.ts'
import { type OutputFormat, print, processOutput } from '../shared/output.ts'

export function addDiff(program: Command): void {
  program
    .command('diff <a> <b>')
    .description(
      'compare two states; exit with 1 if they differ. A state is a manifest file or folder (- for stdin), a log file, an export or nats://…; append @POSITION or @TIME to a log',
    )
    .addOption(outputFormat())
    .action(async (a: string, b: string, options: { output: OutputFormat }) => {
      const { diff } = await import('./diff.ts')
      await print(diff(a, b, processOutput.report), options.output)
    })
}
