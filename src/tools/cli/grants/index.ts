/** The commands `sluice grants …`. */
import type { Command } from 'commander'
import { addLogFile } from '../recording/options.ts'
import { addHelp, natsServer, nonEmpty, outputFormat } from '../shared/options.ts'
import { type OutputFormat, print, processOutput } from '../shared/output.ts'
import type { GrantsOptions } from './grants.ts'

type Printed<Options> = Options & { readonly output: OutputFormat }

export function addGrants(program: Command): void {
  const group = program
    .command('grants')
    .description('show and revoke what users allow the gateway to do for them at other services')
  addSource(
    group
      .command('list', { isDefault: true })
      .description('print who has allowed access to what; exit with 1 if nobody has'),
  ).action(async (options: Printed<GrantsOptions>) => {
    const { listGrants } = await import('./grants.ts')
    await print(listGrants(options, processOutput.report), options.output)
  })
  addSource(
    group
      .command('revoke')
      .description('delete tokens of users; gateways stop to use them within five seconds'),
  ).action(async (options: Printed<GrantsOptions>) => {
    const { revokeGrants } = await import('./grants.ts')
    await print(revokeGrants(options, processOutput.report), options.output)
  })
  addHelp(group)
}

const addSource = (command: Command): Command =>
  addLogFile(command, ['nats', 'grantStore'])
    .option('--nats <url>', 'grants on a NATS server', natsServer)
    .option('--grant-store <place>', 'file with grants, or NATS servers (nats://…)', nonEmpty)
    .option('--service <url>', 'only this service, by the redirectURI of its policy', nonEmpty)
    .option('--principal <name>', 'only this user', nonEmpty)
    .addOption(outputFormat())
