/**
 * Where AWS credentials come from when nobody has given any: the places that the SDKs look at, in
 * their order. The first that is configured decides; one that is configured and fails is an error,
 * because falling through would sign as somebody else.
 *
 *   environment -> shared files -> web identity -> container -> instance metadata (IMDSv2)
 */
import type { Environment } from '../access-token.ts'
import { Renewed } from '../renewed.ts'
import { containerCredentials } from './container-credentials.ts'
import type { CredentialSource, ExpiringCredentials } from './credential-source.ts'
import { environmentCredentials } from './environment-credentials.ts'
import { instanceCredentials } from './instance-credentials.ts'
import { sharedFileCredentials } from './shared-file-credentials.ts'
import { webIdentityCredentials } from './web-identity-credentials.ts'

const sources: readonly CredentialSource[] = [
  environmentCredentials,
  sharedFileCredentials,
  webIdentityCredentials,
  containerCredentials,
  instanceCredentials,
]

/** Credentials of this process, kept and renewed before they end; undefined where nobody has any. */
export function credentialChain(
  env: Environment = process.env,
  now?: () => number,
): Renewed<ExpiringCredentials> {
  return new Renewed(async () => {
    for (const source of sources) {
      const found = await source(env)
      if (found !== undefined) return found
    }
    return undefined
  }, now)
}
