/** The AWS security token service (STS), which gives temporary credentials of a role. */
import { type Environment, fetchText, parseTime } from '../access-token.ts'
import type { Expiring } from '../renewed.ts'
import { type AwsCredentials, payloadHash, signRequest } from './signature.ts'

export interface ExpiringCredentials extends AwsCredentials, Expiring {}

export const tokenService = 'the AWS security token service'

/** A role, and the session in which it is assumed. */
export interface RoleSession {
  readonly roleArn: string
  readonly sessionName: string
  readonly tags: readonly (readonly [key: string, value: string])[]
}

const regionOf = (env: Environment) => env.AWS_REGION || env.AWS_DEFAULT_REGION

/** `AWS_ENDPOINT_URL_STS` or `AWS_ENDPOINT_URL` overrides the URL. */
export function tokenServiceUrl(env: Environment): string {
  const configured = env.AWS_ENDPOINT_URL_STS || env.AWS_ENDPOINT_URL
  if (configured) return configured
  const region = regionOf(env)
  return region ? `https://sts.${region}.amazonaws.com/` : 'https://sts.amazonaws.com/'
}

/** Returns the text of the first element with this name. Responses contain no other entities than these. */
function xmlElement(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text?.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&').trim()
}

/** Reads the credentials in a response of the service. Throws if there are none. */
export function credentialsIn(xml: string): ExpiringCredentials {
  const accessKeyId = xmlElement(xml, 'AccessKeyId')
  const secretAccessKey = xmlElement(xml, 'SecretAccessKey')
  const sessionToken = xmlElement(xml, 'SessionToken')
  if (!accessKeyId || !secretAccessKey || !sessionToken) {
    throw new Error(`${tokenService} answered without credentials`)
  }
  const expiresAt = parseTime(xmlElement(xml, 'Expiration'))
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt }
}

/** Assumes a role (AWS STS, AssumeRole) with the credentials of the gateway. */
export async function assumeRole(
  { roleArn, sessionName, tags }: RoleSession,
  own: AwsCredentials,
  env: Environment = process.env,
): Promise<ExpiringCredentials> {
  const form = new URLSearchParams({
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: sessionName,
  })
  for (const [at, [key, value]] of tags.entries()) {
    form.set(`Tags.member.${at + 1}.Key`, key)
    form.set(`Tags.member.${at + 1}.Value`, value)
  }
  const body = Buffer.from(form.toString())
  const url = new URL(tokenServiceUrl(env))
  const type = ['content-type', 'application/x-www-form-urlencoded'] as const
  const signable = {
    method: 'POST',
    host: url.host,
    path: url.pathname,
    query: undefined,
    headers: [type],
    payloadHash: payloadHash(body),
  }
  const scope = { region: regionOf(env) ?? 'us-east-1', service: 'sts' }
  const signed = signRequest(signable, scope, own, Date.now())
  const headers = Object.fromEntries([type, ...signed])
  return credentialsIn(await fetchText(tokenService, url.href, { method: 'POST', headers, body }))
}
