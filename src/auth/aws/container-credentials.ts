import { readFile } from 'node:fs/promises'
import type { Environment } from '../access-token.ts'
import { fetchText } from '../fetch-text.ts'
import type { CredentialSource } from './credential-source.ts'
import { parseCredentials } from './fetch-credentials.ts'

const what = 'the credential service of the container'
/** Where ECS and EKS serve credentials in plaintext; elsewhere it must be TLS or this machine. */
const plaintextHosts = ['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]']

/**
 * `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` (ECS) or `AWS_CONTAINER_CREDENTIALS_FULL_URI` (EKS pod
 * identity), with a token from `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` or
 * `AWS_CONTAINER_AUTHORIZATION_TOKEN`.
 */
export const containerCredentials: CredentialSource = async (env) => {
  const relative = env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
  const full = env.AWS_CONTAINER_CREDENTIALS_FULL_URI
  const url = relative ? `http://169.254.170.2${relative}` : full
  if (!url) return undefined
  requireSafe(url)
  const token = await authorizationToken(env)
  const headers = { accept: 'application/json', ...(token && { authorization: token }) }
  return parseCredentials(what, await fetchText(what, url, { headers }))
}

function requireSafe(url: string): void {
  const { protocol, hostname } = new URL(url)
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isLoopback || plaintextHosts.includes(hostname)) return
  throw new Error(
    `AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or on this machine, not ${hostname}`,
  )
}

async function authorizationToken(env: Environment): Promise<string | undefined> {
  const path = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
  if (path) return (await readFile(path, 'utf8')).trim()
  return env.AWS_CONTAINER_AUTHORIZATION_TOKEN
}
