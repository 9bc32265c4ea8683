/**
 * Finds Google credentials if none are configured ("application default credentials"):
 *
 *   GOOGLE_APPLICATION_CREDENTIALS -> the file that gcloud writes -> the metadata server
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import {
  type AccessToken,
  type Environment,
  fetchToken,
  firstFound,
  metadataWaitMs,
  orAbsent,
  type TokenSource,
} from '../access-token.ts'
import { Renewed } from '../renewed.ts'
import { cloudScope, tokenOfFile } from './credential-file.ts'

const namedFile: TokenSource = async ({ GOOGLE_APPLICATION_CREDENTIALS: path }) => {
  if (!path) return undefined
  const text = await readFile(path, 'utf8').catch((cause) => {
    throw new Error(`GOOGLE_APPLICATION_CREDENTIALS: ${path} cannot be read`, { cause })
  })
  return tokenOfFile(text, path)
}

const wellKnownFile: TokenSource = async (env) => {
  const folder = env.CLOUDSDK_CONFIG || join(env.HOME || homedir(), '.config', 'gcloud')
  const path = join(folder, 'application_default_credentials.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : tokenOfFile(text, path)
}

/**
 * Fetches a token of the service account of a machine, pod or function. `GCE_METADATA_HOST` overrides
 * the host of the metadata server, and `NO_GCE_CHECK=true` disables this source.
 */
const metadataToken: TokenSource = async (env) => {
  if (env.NO_GCE_CHECK?.toLowerCase() === 'true') return undefined
  const configured = env.GCE_METADATA_HOST || env.GCE_METADATA_IP
  const base = `http://${configured || '169.254.169.254'}/computeMetadata/v1/instance`
  const url = `${base}/service-accounts/default/token?scopes=${encodeURIComponent(cloudScope)}`
  const request = { headers: { 'metadata-flavor': 'Google' } }
  const waitMs = configured ? undefined : metadataWaitMs
  const lookup = fetchToken('the metadata server', url, request, waitMs)
  return orAbsent(Boolean(configured), lookup)
}

/** Returns the token of this process, which is cached and renewed before it expires. */
export function applicationDefault(env: Environment = process.env): Renewed<AccessToken> {
  return new Renewed(() => firstFound([namedFile, wellKnownFile, metadataToken], env))
}
