/** The command `sluice what-if` and its options. */
import { type Command, Option } from 'commander'
import { addLogFile } from '../recording/options.ts'
import {
  ambiguousPaths,
  collect,
  manifests,
  modelCatalogs,
  natsServer,
  nonEmpty,
  type RecordFolder,
  recordDir,
  requestsOption,
} from '../shared/options.ts'
import { print, processOutput } from '../shared/output.ts'
import type { WhatIfOptions } from './what-if.ts'

export function addWhatIf(program: Command): void {
  const command = program
    .command('what-if')
    .description(
      'show what a change of manifests would change; exit with 0 if nothing changes, 1 if something does, 3 if some requests are undecided and nothing else changes',
    )
    .option('--from <path>', 'manifests of the present state; may be repeated', collect)
  addLogFile(command, ['from', 'nats'])
    .option('--nats <url>', 'event log with the present state on a NATS server', natsServer)
    .option('--at <position|time>', 'ignore events after this position or time')
    .addOption(manifests().makeOptionMandatory())
    .option(
      '--overlay',
      'only add and replace the objects of -f; otherwise, all others are removed',
    )
    .addOption(recordDir('folder with decision records; compare the outcome of each'))
    .addOption(
      new Option(
        '--records <file>',
        'compare the outcomes of the requests in a file that sluice records export has written',
      ).argParser(nonEmpty),
    )
    .addOption(
      new Option(
        '--records-key <file>',
        'key that must have signed the file of --records: an Ed25519 public key in PEM, or the secret',
      ).argParser(nonEmpty),
    )
    .option('--records-max-age <duration>', 'refuse a file of --records that is older', '7d')
    .option('--since <time>', 'ignore records before this time, such as 30d or 2026-01-31')
    .option('--until <time>', 'ignore records from this time on')
    .addOption(requestsOption('the same as --record-dir').hideHelp())
    .addOption(ambiguousPaths())
    .addOption(modelCatalogs())
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['text', 'json', 'markdown'])
        .default('text'),
    )
    .option(
      '--fail-on <kinds>',
      'exit with 1 only for changes of these kinds, such as deny-to-allow',
    )
    .action(async ({ recordDir: folder, ...options }: WhatIfOptions & RecordFolder) => {
      const { whatIf } = await import('./what-if.ts')
      const format = options.output === 'json' ? 'json' : 'text'
      const requests = folder ?? options.requests
      const given = { ...options, ...(requests && { requests }) }
      await print(whatIf(given, processOutput.report), format)
    })
}
