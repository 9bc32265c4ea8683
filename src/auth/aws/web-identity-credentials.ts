import { readFile } from 'node:fs/promises'
import type { Environment } from '../access-token.ts'
import { fetchText } from '../fetch-text.ts'
import type { CredentialSource } from './credential-source.ts'

const what = 'the AWS security token service'

/**
 * A role for the token of a service account (`AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN`), as
 * clusters on EKS give it. `AWS_ENDPOINT_URL_STS` or `AWS_ENDPOINT_URL` is another place for the
 * service.
 */
export const webIdentityCredentials: CredentialSource = async (env) => {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: path, AWS_ROLE_ARN: role } = env
  if (!path || !role) return undefined
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: env.AWS_ROLE_SESSION_NAME || 'sluice',
    WebIdentityToken: (await readFile(path, 'utf8')).trim(),
  })
  const text = await fetchText(what, endpoint(env), { method: 'POST', body })
  const accessKeyId = element(text, 'AccessKeyId')
  const secretAccessKey = element(text, 'SecretAccessKey')
  const sessionToken = element(text, 'SessionToken')
  if (!accessKeyId || !secretAccessKey || !sessionToken) {
    throw new Error(`${what} answered without credentials`)
  }
  const expiresAt = Date.parse(element(text, 'Expiration') ?? '')
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken,
    ...(!Number.isNaN(expiresAt) && { expiresAt }),
  }
}

function endpoint(env: Environment): string {
  const given = env.AWS_ENDPOINT_URL_STS || env.AWS_ENDPOINT_URL
  if (given) return given
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION
  return region ? `https://sts.${region}.amazonaws.com/` : 'https://sts.amazonaws.com/'
}

/** The text of the first element of a name; the answer's texts need no entities but these. */
function element(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text?.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&').trim()
}
