/** `sluice idp prepare` sets up a realm and prints the policy that requires its tokens. */

import { parseDurationMs } from '../../../ground/base/duration.ts'
import { timerDelay } from '../../../ground/base/timer-delay.ts'
import { manifestsResult } from '../shared/manifests.ts'
import {
  type CommandResult,
  exitCode,
  type ManifestFormat,
  type Output,
  UsageError,
} from '../shared/output.ts'
import { AdminClient } from './admin.ts'
import { readInput } from './files.ts'
import { Credentials, IdentityProviderError, type Server } from './http.ts'
import { manifestsOf, type PolicyOptions, referencesOf } from './policy.ts'
import { baseAddress, Setup } from './setup.ts'
import { readUsers } from './users.ts'

/** Options from the command line; see command.ts. */
export interface PrepareOptions extends Omit<PolicyOptions, 'name'> {
  readonly url: string
  readonly realm: string
  readonly adminRealm: string
  readonly adminClient: string
  readonly adminUser: string
  readonly adminPasswordFile?: string
  readonly clientId: string
  readonly clientFile: string
  readonly serviceAccounts?: boolean
  readonly directAccessGrants?: boolean
  readonly authorizationServices?: boolean
  readonly redirectUri?: readonly string[]
  readonly usersFile?: string
  readonly testing?: boolean
  readonly registrationPolicyType: string
  readonly name?: string
  readonly timeout: string
  readonly output: ManifestFormat
}

const passwordVariable = 'SLUICE_IDP_ADMIN_PASSWORD'

/** Reads the password from the file or the environment and removes a line break at its end. */
function adminPassword({ adminPasswordFile: file }: PrepareOptions): string {
  const given =
    file === undefined ? process.env[passwordVariable] : readInput('--admin-password-file', file)
  const password = given?.replace(/\r?\n$/, '')
  if (password) return password
  throw new UsageError(
    file === undefined
      ? `no admin password: set ${passwordVariable} or give --admin-password-file`
      : `${file}: is empty`,
  )
}

function policyName({ name, realm }: PrepareOptions): string {
  const text = name ?? `idp-${realm}`.toLowerCase()
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text
  throw new UsageError(`--name: '${text}' is not a valid object name; set another`)
}

function serverOf({ url, timeout }: PrepareOptions, credentials: Credentials): Server {
  const timeoutMs = parseDurationMs(timeout)
  if (!timeoutMs) throw new UsageError(`--timeout: '${timeout}' is not a duration such as 10s`)
  return { url: baseAddress(url), timeoutMs: timerDelay(timeoutMs), credentials }
}

/** Makes the calls in order. The options are parsed before the first call. */
async function perform(options: PrepareOptions, report: Output['report']): Promise<CommandResult> {
  const credentials = new Credentials()
  const server = serverOf(options, credentials)
  const policy = { ...options, name: policyName(options) }
  referencesOf(policy)
  const users = options.usersFile === undefined ? [] : readUsers(options.usersFile, credentials)
  const admin = new AdminClient(server, {
    realm: options.adminRealm,
    clientId: options.adminClient,
    user: options.adminUser,
    password: credentials.add(adminPassword(options)),
  })
  const setup = new Setup(server, admin, options.realm, report)
  const discovery = await setup.discover()
  const manifests = manifestsOf(server.url, discovery, policy)
  if (discovery.isOtherHost) {
    report('the realm names its key set at another host; the policy fetches it from that of --url')
  }
  const known = setup.knownClient(options.clientId, options.clientFile)
  if (options.testing) await setup.openRegistration(options.registrationPolicyType)
  const client = known ?? (await setup.registerClient(options.clientId, options.clientFile))
  await setup.configureClient(client, {
    serviceAccountsEnabled: options.serviceAccounts ?? false,
    directAccessGrantsEnabled: options.directAccessGrants ?? false,
    authorizationServicesEnabled: options.authorizationServices ?? false,
    redirectUris: options.redirectUri ?? [],
  })
  await setup.mapGroups(client)
  for (const user of users) await setup.addUser(user)
  return manifestsResult(manifests)
}

/** The exit code is 1 if the identity provider cannot be reached or refuses a call. */
export async function prepare(
  options: PrepareOptions,
  report: Output['report'],
): Promise<CommandResult> {
  try {
    return await perform(options, report)
  } catch (error) {
    if (!(error instanceof IdentityProviderError)) throw error
    report(`sluice: ${error.message}`)
    return { text: () => [], exitCode: exitCode.negative }
  }
}
