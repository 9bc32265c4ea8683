/**
 * Finds AWS credentials if none are configured: the places where the AWS SDKs look, in their order.
 * Only the first configured place is used. If it fails, that is an error, because credentials from a
 * later place would belong to another identity.
 *
 *   environment -> shared files -> web identity -> container -> instance metadata (IMDSv2)
 */
import { readFile } from 'node:fs/promises'
import {
  type CredentialSource,
  type Environment,
  fetchText,
  firstFound,
  metadataWaitMs,
  orAbsent,
  parseTime,
  readFields,
} from '../access-token.ts'
import { Renewed } from '../renewed.ts'
import {
  credentialsIn,
  type ExpiringCredentials,
  tokenService,
  tokenServiceUrl,
} from './assumed-role.ts'
import { sharedFileCredentials } from './shared-file-credentials.ts'

type AwsSource = CredentialSource<ExpiringCredentials>

/** The credentials of this process, renewed before they expire; undefined if there are none. */
export function credentialChain(
  env: Environment = process.env,
  now?: () => number,
): Renewed<ExpiringCredentials> {
  return new Renewed(() => firstFound(sources, env), now)
}

/** `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for temporary credentials, `AWS_SESSION_TOKEN`. */
const environmentCredentials: AwsSource = async (env) => {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN || undefined }
}

/**
 * Assumes a role with the token of a service account, as EKS clusters configure it in
 * `AWS_WEB_IDENTITY_TOKEN_FILE` and `AWS_ROLE_ARN`. `AWS_ENDPOINT_URL_STS` or `AWS_ENDPOINT_URL`
 * overrides the URL of the security token service.
 */
const webIdentityCredentials: AwsSource = async (env) => {
  const { AWS_WEB_IDENTITY_TOKEN_FILE: path, AWS_ROLE_ARN: role } = env
  if (!path || !role) return undefined
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: env.AWS_ROLE_SESSION_NAME || 'sluice',
    WebIdentityToken: (await readFile(path, 'utf8')).trim(),
  })
  return credentialsIn(
    await fetchText(tokenService, tokenServiceUrl(env), { method: 'POST', body }),
  )
}

/** Hosts from which ECS and EKS serve credentials in plaintext. Other hosts must use TLS or be loopback. */
const plaintextHosts = ['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]']

/**
 * Fetches the credentials of a container from `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` (ECS) or
 * `AWS_CONTAINER_CREDENTIALS_FULL_URI` (EKS pod identity), with the token in
 * `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` or `AWS_CONTAINER_AUTHORIZATION_TOKEN`.
 */
const containerCredentials: AwsSource = async (env) => {
  const relative = env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
  const full = env.AWS_CONTAINER_CREDENTIALS_FULL_URI
  const url = relative ? `http://169.254.170.2${relative}` : full
  if (!url) return undefined
  requireSafe(url)
  const path = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
  const token = path ? (await readFile(path, 'utf8')).trim() : env.AWS_CONTAINER_AUTHORIZATION_TOKEN
  const headers = { accept: 'application/json', ...(token && { authorization: token }) }
  return fetchCredentials('the credential service of the container', url, headers)
}

function requireSafe(url: string): void {
  const { protocol, hostname } = new URL(url)
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isLoopback || plaintextHosts.includes(hostname)) return
  throw new Error(
    `AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or on this machine, not ${hostname}`,
  )
}

/**
 * Fetches credentials for the role of an EC2 instance (IMDSv2). `AWS_EC2_METADATA_DISABLED=true`
 * disables this source, and `AWS_EC2_METADATA_SERVICE_ENDPOINT` overrides the URL of the service.
 */
const instanceCredentials: AwsSource = async (env) => {
  if (env.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true') return undefined
  const service = 'the metadata service of the instance'
  const configured = env.AWS_EC2_METADATA_SERVICE_ENDPOINT
  const base = (configured || 'http://169.254.169.254').replace(/\/$/, '')
  const request = { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' } }
  const lookup = fetchText(service, `${base}/latest/api/token`, request, metadataWaitMs)
  const token = await orAbsent(Boolean(configured), lookup)
  if (token === undefined) return undefined
  const headers = { 'x-aws-ec2-metadata-token': token }
  const url = `${base}/latest/meta-data/iam/security-credentials/`
  const [role = ''] = (await fetchText(service, url, { headers })).trim().split('\n')
  if (role === '') throw new Error('the instance has no role')
  return fetchCredentials(service, `${url}${encodeURIComponent(role)}`, headers)
}

/** Fetches credentials in the JSON format that the container and instance services share. */
async function fetchCredentials(
  service: string,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<ExpiringCredentials> {
  const fields = readFields(await fetchText(service, url, { headers }))
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: token } = fields
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') {
    throw new Error(`${service} answered without credentials`)
  }
  const sessionToken = typeof token === 'string' ? token : undefined
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt: parseTime(fields.Expiration) }
}

const sources: readonly AwsSource[] = [
  environmentCredentials,
  sharedFileCredentials,
  webIdentityCredentials,
  containerCredentials,
  instanceCredentials,
]
