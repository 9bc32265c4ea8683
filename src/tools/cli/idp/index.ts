/** The command `sluice idp prepare` and its options. */
import { type Command, Option } from 'commander'
import { addHelp, collect, manifestFormat, nonEmpty } from '../shared/options.ts'
import { print, processOutput, UsageError } from '../shared/output.ts'
import type { PrepareOptions } from './prepare.ts'

/** Refuses a password as an argument, which every user of the machine can see, and does not repeat it. */
const refusePassword = (): never => {
  throw new UsageError(
    'a password is never an argument: use --admin-password-file or SLUICE_IDP_ADMIN_PASSWORD',
  )
}

function providerOptions(command: Command): void {
  command
    .requiredOption('--url <url>', 'base address of the identity provider')
    .requiredOption(
      '--realm <name>',
      'realm whose tokens the gateway accepts; it must exist',
      nonEmpty,
    )
    .requiredOption('--admin-user <name>', 'administrator of the realm', nonEmpty)
    .option(
      '--admin-password-file <path>',
      'file with the password of that user (default: SLUICE_IDP_ADMIN_PASSWORD)',
    )
    .addOption(new Option('--admin-password [value]').argParser(refusePassword).hideHelp())
    .option('--admin-realm <name>', 'realm of that user', nonEmpty, 'master')
    .option('--admin-client <id>', 'client that the user signs in with', nonEmpty, 'admin-cli')
    .option('--timeout <duration>', 'timeout of a call', '10s')
}

function clientOptions(command: Command): void {
  command
    .requiredOption('--client-id <id>', 'client to register', nonEmpty)
    .requiredOption(
      '--client-file <path>',
      'file that stores the id and the secret of the client for later runs',
      nonEmpty,
    )
    .option('--service-accounts', 'give the client a service account')
    .option('--direct-access-grants', 'allow users to sign in with a password')
    .option('--authorization-services', 'let the provider authorize requests for the client')
    .option('--redirect-uri <uri>', 'redirect URI of the client; may be repeated', collect)
    .option('--users-file <path>', 'users to add: YAML or JSON; see docs/identity-provider.md')
    .option('--testing', 'delete the policies that restrict registration; never in production')
    .option(
      '--registration-policy-type <type>',
      'type of the components that --testing searches',
      nonEmpty,
      'org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy',
    )
}

function policyOptions(command: Command): void {
  command
    .addOption(
      new Option('--target <Kind/name>', 'target of the policy; may be repeated')
        .argParser(collect)
        .makeOptionMandatory(),
    )
    .option('--audience <text>', 'accepted audience; may be repeated', collect)
    .option('--backend <Kind/name>', 'Service/name:port or GatewayBackend/name of the key set')
    .option('--name <name>', 'name of the printed objects (default: idp-REALM)')
    .option('--namespace <name>', 'namespace of the printed objects')
    .addOption(manifestFormat())
}

/** Adds the command `idp prepare`. */
export function addIdentityProvider(program: Command): void {
  const group = program.command('idp').description('identity providers')
  const command = group
    .command('prepare')
    .description(
      'register a client at an identity provider, add users, and print the GatewayPolicy that requires its tokens; can be repeated',
    )
  providerOptions(command)
  clientOptions(command)
  policyOptions(command)
  command.action(async (options: PrepareOptions) => {
    const { prepare } = await import('./prepare.ts')
    await print(prepare(options, processOutput.report), options.output)
  })
  addHelp(group)
}
