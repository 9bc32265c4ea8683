/** The command `sluice decisions` and its options. */
import { type Command, Option } from 'commander'
import { natsServer, nonEmpty, outputFormat, recordDir } from '../shared/options.ts'
import { processOutput } from '../shared/output.ts'
import type { DecisionsOptions } from './decisions.ts'

export function addDecisions(program: Command): void {
  program
    .command('decisions')
    .description(
      'print what proxies decided about requests, in the order in which the requests ended (--nats: in the order in which proxies published them); exit with 1 if no record is selected',
    )
    .addOption(recordDir('folder with decision records (default: those of the newest log)'))
    .addOption(
      new Option('--nats <url>', 'decision records on a NATS server').argParser(natsServer),
    )
    .addOption(new Option('--id <id>', 'only requests with this x-request-id').argParser(nonEmpty))
    .option('--status <status>', 'only responses with this status, such as 403 or 4xx')
    .option('--route <namespace/name>', 'only requests of this route')
    .option('--backend <namespace/name>', 'only requests to this backend')
    .addOption(
      new Option('--tool <name>', 'only calls of this tool, as its server names it').argParser(
        nonEmpty,
      ),
    )
    .addOption(
      new Option('--target <name>', 'only requests to this target of an MCP backend').argParser(
        nonEmpty,
      ),
    )
    .addOption(
      new Option('--principal <name>', 'only requests of this principal').argParser(nonEmpty),
    )
    .option(
      '--refused-by [what]',
      'only what MCP backends have refused: by rules, pinning, toolGuard, guard, processor, rateLimit, budget, repeats, circuitBreaker, approval, size, timeout, or by any of these',
    )
    .option(
      '--since <time>',
      'only requests that started since this time, or within this duration before now, such as 15m',
    )
    .option(
      '--until <time>',
      'only requests that started before this time, or before this duration ago',
    )
    .addOption(outputFormat())
    .action(async (options: DecisionsOptions) => {
      const { decisions } = await import('./decisions.ts')
      const { newestRecords } = await import('../recording/newest-log.ts')
      const isNamed = (options.recordDir ?? options.nats) !== undefined
      const folder = isNamed ? options.recordDir : newestRecords(processOutput.report)
      const given = { ...options, ...(folder && { recordDir: folder }) }
      process.exitCode = await decisions(given, processOutput)
    })
}
