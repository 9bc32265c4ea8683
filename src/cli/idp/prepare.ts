/** `sluice idp prepare`: sets a realm up and prints the policy that asks for its tokens. */

import { stringify } from 'yaml'
import { parseDurationMs } from '../../base/duration.ts'
import { timerDelay } from '../../base/timer-delay.ts'
import { exitCode, type Output, UsageError } from '../output.ts'
import { AdminClient, type Administrator } from './admin.ts'
import { readInput } from './files.ts'
import type { Server } from './http.ts'
import { manifestsOf, type PolicyOptions, referencesOf } from './policy.ts'
import { Credentials, IdentityProviderError } from './problem.ts'
import { baseAddress, Setup } from './setup.ts'
import { readUsers } from './users.ts'

/** Options as the command line gives them; see command.ts. */
export interface PrepareOptions {
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
  readonly target: readonly string[]
  readonly audience?: readonly string[]
  readonly backend?: string
  readonly name?: string
  readonly namespace?: string
  readonly timeout: string
  readonly output: 'yaml' | 'json'
}

const passwordVariable = 'SLUICE_IDP_ADMIN_PASSWORD'

/** From the file, else from the environment; one line break at the end is not a part of it. */
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

function policyOptions(options: PrepareOptions): PolicyOptions {
  const { realm, target, audience = [], namespace, backend } = options
  const name = options.name ?? `idp-${realm}`.toLowerCase()
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
    throw new UsageError(`--name: '${name}' is no name of an object; give another`)
  }
  return {
    name,
    targets: target,
    audiences: audience,
    ...(namespace !== undefined && { namespace }),
    ...(backend !== undefined && { backend }),
  }
}

function serverOf({ url, timeout }: PrepareOptions, credentials: Credentials): Server {
  const timeoutMs = parseDurationMs(timeout)
  if (!timeoutMs) throw new UsageError(`--timeout: '${timeout}' is no duration such as 10s`)
  return { url: baseAddress(url), timeoutMs: timerDelay(timeoutMs), credentials }
}

/** The calls, in order. Everything that can be wrong in the options is found before the first. */
async function perform(options: PrepareOptions, output: Output): Promise<string> {
  const credentials = new Credentials()
  const server = serverOf(options, credentials)
  const printed = policyOptions(options)
  referencesOf(printed)
  const users = options.usersFile === undefined ? [] : readUsers(options.usersFile, credentials)
  const administrator: Administrator = {
    realm: options.adminRealm,
    clientId: options.adminClient,
    user: options.adminUser,
    password: credentials.add(adminPassword(options)),
  }
  const admin = new AdminClient(server, administrator)
  const setup = new Setup(server, admin, options.realm, (text) => output.report(text))
  const discovery = await setup.discover()
  const manifests = manifestsOf(server.url, discovery, printed)
  if (discovery.elsewhere) {
    output.report('the realm names its keys at another host; the policy asks at that of --url')
  }
  if (options.testing) await setup.openRegistration(options.registrationPolicyType)
  const client = await setup.registerClient(options.clientId, options.clientFile)
  await setup.configureClient(client, {
    serviceAccountsEnabled: options.serviceAccounts ?? false,
    directAccessGrantsEnabled: options.directAccessGrants ?? false,
    authorizationServicesEnabled: options.authorizationServices ?? false,
    redirectUris: options.redirectUri ?? [],
  })
  await setup.mapGroups(client)
  for (const user of users) await setup.addUser(user)
  if (options.output === 'yaml') {
    return manifests
      .map((manifest) => stringify(manifest))
      .join('---\n')
      .trimEnd()
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }, undefined, 2)
}

/** Exit code 1 where the identity provider cannot be reached or refuses. */
export async function prepare(options: PrepareOptions, output: Output): Promise<number> {
  try {
    output.print(await perform(options, output))
    return exitCode.fine
  } catch (error) {
    if (!(error instanceof IdentityProviderError)) throw error
    output.report(`sluice: ${error.message}`)
    return exitCode.no
  }
}
