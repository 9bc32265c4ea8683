/** The options of `sluice idp`. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { addHelp } from '../help.ts'
import { processOutput, UsageError } from '../output.ts'
import type { PrepareOptions } from './prepare.ts'

/** An empty argument is a variable of a script that was not set: nothing is done with it. */
function filled(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

const collect = (value: string, before: readonly string[] = []): string[] => [
  ...before,
  filled(value),
]

/** Arguments are seen by every user of a machine; a value given this way is not repeated either. */
const refusePassword = (): never => {
  throw new UsageError(
    'a password is never an argument: give --admin-password-file or set SLUICE_IDP_ADMIN_PASSWORD',
  )
}

function providerOptions(command: Command): void {
  command
    .requiredOption('--url <url>', 'base address of the identity provider')
    .requiredOption(
      '--realm <name>',
      'realm whose tokens the gateway shall accept; it must exist',
      filled,
    )
    .requiredOption('--admin-user <name>', 'user that may administrate the realm', filled)
    .option(
      '--admin-password-file <path>',
      'file with the password of that user; else SLUICE_IDP_ADMIN_PASSWORD',
    )
    .addOption(new Option('--admin-password [value]').argParser(refusePassword).hideHelp())
    .option('--admin-realm <name>', 'realm of that user', filled, 'master')
    .option('--admin-client <id>', 'client that the user signs in with', filled, 'admin-cli')
    .option('--timeout <duration>', 'time for a call', '10s')
}

function clientOptions(command: Command): void {
  command
    .requiredOption('--client-id <id>', 'client to register', filled)
    .requiredOption(
      '--client-file <path>',
      'where the id and the secret of the client are kept, for the next run too',
      filled,
    )
    .option('--service-accounts', 'let the client have a service account')
    .option('--direct-access-grants', 'let users sign in with a password at the client')
    .option('--authorization-services', 'let the provider decide on access for the client')
    .addOption(
      new Option('--redirect-uri <uri>', 'of the client; may be repeated').argParser(collect),
    )
    .option('--users-file <path>', 'users to add: YAML or JSON; see docs/identity-provider.md')
    .option('--testing', 'remove the policies that restrict registration; never in production')
    .option(
      '--registration-policy-type <type>',
      'type of the components that --testing looks through',
      filled,
      'org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy',
    )
}

function policyOptions(command: Command): void {
  command
    .addOption(
      new Option('--target <Kind/name>', 'what the policy guards; may be repeated')
        .argParser(collect)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--audience <text>', 'accepted audience; may be repeated').argParser(collect),
    )
    .option('--backend <Kind/name>', 'Service/name:port or GatewayBackend/name to get keys from')
    .option('--name <name>', 'of the printed objects; idp-REALM where absent')
    .option('--namespace <name>', 'of the printed objects')
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
}

/** Adds `idp prepare`. */
export function addIdentityProvider(program: Command): void {
  const group = program.command('idp').description('identity providers')
  const command = group
    .command('prepare')
    .description(
      'register a client at an identity provider, add users, and print the GatewayPolicy that asks for its tokens; may run again',
    )
  providerOptions(command)
  clientOptions(command)
  policyOptions(command)
  command.action(async (options: PrepareOptions) => {
    const { prepare } = await import('./prepare.ts')
    process.exitCode = await prepare(options, processOutput)
  })
  addHelp(group)
}
