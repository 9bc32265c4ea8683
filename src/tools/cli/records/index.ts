/** The command `sluice records export` and its options. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { outputFormat, recordDir } from '../shared/options.ts'
import { type OutputFormat, print, processOutput } from '../shared/output.ts'
import type { ExportOptions } from './export.ts'

export function addRecords(program: Command): void {
  program
    .command('records')
    .description('decision records as files')
    .command('export <file>')
    .description(
      'write recorded requests to a signed file for sluice what-if; it contains no credentials and no bodies',
    )
    .addOption(recordDir().makeOptionMandatory())
    .requiredOption(
      '--key <file>',
      'key that signs the file: an Ed25519 private key in PEM, or a secret of at least 32 bytes for HMAC',
    )
    .option(
      '--since <time>',
      'leave out requests before this time, such as 30d or 2026-01-31; a block with a later request is exported whole',
    )
    .addOption(
      new Option(
        '--max-megabytes <count>',
        'maximum size of the file; the oldest requests are left out',
      )
        .argParser(readMegabytes)
        .default(32),
    )
    .addOption(outputFormat())
    .action(
      async (file: string, { output, ...options }: ExportOptions & { output: OutputFormat }) => {
        const { exportRecords } = await import('./export.ts')
        await print(exportRecords(file, options, processOutput.report), output)
      },
    )
}

function readMegabytes(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 256) throw new InvalidArgumentError('expected a number from 1 to 256')
  return count
}
