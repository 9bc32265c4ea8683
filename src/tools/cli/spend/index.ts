/** The command `sluice spend` and its options. */
import { type Command, Option } from 'commander'
import { collect, natsServer, recordDir } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { SpendOptions } from './spend.ts'

export function addSpend(program: Command): void {
  program
    .command('spend')
    .description(
      'print what requests to language models have cost, from decision records; exit with 1 if no request was billed, or with --compare if something differs',
    )
    .addOption(recordDir('folder with decision records (default: those of the newest log)'))
    .addOption(
      new Option('--nats <url>', 'decision records on a NATS server').argParser(natsServer),
    )
    .option(
      '--by <dimensions>',
      'what to add up by, separated by commas: provider, model, gateway, route, backend, proxy, service, status, hour, day, month, or a dimension of the identity such as team',
      'provider,model',
    )
    .option(
      '--since <time>',
      'only requests that started since this time, or within this duration before now, such as 30d',
    )
    .option('--until <time>', 'only requests that started before this time')
    .option('--model <name>', 'only requests that this model answered; may be repeated', collect)
    .addOption(
      new Option(
        '--model-catalog <path>',
        'also price the requests with this catalog beside the shipped one; may be repeated',
      ).argParser(collect),
    )
    .option(
      '--as <model=other>',
      'also price the requests as if another model had answered, such as gpt-4o=gpt-4o-mini or gpt-4o=anthropic/claude-haiku-4-5; may be repeated',
      collect,
    )
    .option(
      '--compare <path>',
      'compare with an export of the usage or costs of a vendor; may be repeated',
      collect,
    )
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['text', 'json', 'csv'])
        .default('text'),
    )
    .action(async (options: SpendOptions) => {
      const { spend } = await import('./spend.ts')
      const { newestRecords } = await import('../recording/newest-log.ts')
      const isNamed = (options.recordDir ?? options.nats) !== undefined
      const folder = isNamed ? options.recordDir : newestRecords(processOutput.report)
      const given = { ...options, ...(folder && { recordDir: folder }) }
      process.exitCode = await spend(given, processOutput)
    })
}
