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
    .description('show and revoke the access that users have granted the gateway at other services')
  addSource(
    group
      .command('list', { isDefault: true })
      .description('list the grants of users; exit with 1 if there are none'),
  )
    .option(
      '--revoked',
      'list removed grants instead, and whether their tokens were revoked at the service',
    )
    .action(async (options: Printed<GrantsOptions>) => {
      const { listGrants } = await import('./grants.ts')
      await print(listGrants(options, processOutput.report), options.output)
    })
  addSource(
    group
      .command('revoke')
      .description(
        'delete grants; gateways stop using them within five seconds, and revoke their tokens at the service',
      ),
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
    .option(
      '--service <url>',
      'only this service, named by the redirectURI of its policy',
      nonEmpty,
    )
    .option('--principal <name>', 'only this user', nonEmpty)
    .addOption(outputFormat())
