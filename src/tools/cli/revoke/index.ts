/** The command `sluice revoke`. */
import type { Command } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { author, collect, natsServer, nonEmpty, outputFormat, reason } from '../shared/options.ts'
import { type OutputFormat, print, processOutput } from '../shared/output.ts'
import type { RevokeOptions } from './revoke.ts'

export function addRevoke(program: Command): void {
  addLogFile(
    program
      .command('revoke')
      .description(
        'refuse tokens and sessions of users that have not expired, on all gateways of an event log',
      )
      .requiredOption('--issuer <url>', 'issuer of the tokens, as in their claim `iss`', nonEmpty)
      .option('--jti <id>', 'a token, by its claim `jti`; may be repeated', collect)
      .option(
        '--sub <subject>',
        'all tokens and sessions that a user has now, by the claim `sub`; may be repeated',
        collect,
      )
      .option(
        '--for <duration>',
        'how long they are refused; at least the lifetime of the tokens and sessions',
        '30d',
      )
      .addOption(reason(true))
      .addOption(author()),
    ['nats'],
  )
    .option('--nats <url>', 'event log on a NATS server', natsServer)
    .addOption(outputFormat())
    .action(async (options: RevokeOptions & { readonly output: OutputFormat }) => {
      const { revoke } = await import('./revoke.ts')
      await print(revoke(options, processOutput.report), options.output)
    })
}
