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
  fetchText,
  fetchToken,
  firstFound,
  metadataWaitMs,
  orAbsent,
  type TokenSource,
} from '../access-token.ts'
import { Renewed } from '../renewed.ts'
import { cloudScope, idToken, tokenOfFile, type WantedToken } from './credential-file.ts'

type Source = (env: Environment, wanted: WantedToken) => Promise<AccessToken | undefined>

const namedFile: Source = async ({ GOOGLE_APPLICATION_CREDENTIALS: path }, wanted) => {
  if (!path) return undefined
  const text = await readFile(path, 'utf8').catch((cause) => {
    throw new Error(`GOOGLE_APPLICATION_CREDENTIALS: ${path} cannot be read`, { cause })
  })
  return tokenOfFile(text, path, wanted)
}

const wellKnownFile: Source = async (env, wanted) => {
  const folder = env.CLOUDSDK_CONFIG || join(env.HOME || homedir(), '.config', 'gcloud')
  const path = join(folder, 'application_default_credentials.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : tokenOfFile(text, path, wanted)
}

/**
 * Fetches a token of the service account of a machine, pod or function. `GCE_METADATA_HOST` overrides
 * the host of the metadata server, and `NO_GCE_CHECK=true` disables this source.
 */
const metadataToken: Source = async (env, wanted) => {
  if (env.NO_GCE_CHECK?.toLowerCase() === 'true') return undefined
  const configured = env.GCE_METADATA_HOST || env.GCE_METADATA_IP
  const base = `http://${configured || '169.254.169.254'}/computeMetadata/v1/instance`
  const account = `${base}/service-accounts/default`
  const server = 'the metadata server'
  const request = { headers: { 'metadata-flavor': 'Google' } }
  const waitMs = configured ? undefined : metadataWaitMs
  const lookup =
    wanted === 'accessToken'
      ? fetchToken(
          server,
          `${account}/token?scopes=${encodeURIComponent(cloudScope)}`,
          request,
          waitMs,
        )
      : fetchText(
          server,
          `${account}/identity?audience=${encodeURIComponent(wanted.audience)}&format=full`,
          request,
          waitMs,
        ).then((text) => idToken(text.trim()))
  return orAbsent(Boolean(configured), lookup)
}

/** Returns the tokens of this process, which are cached and renewed before they expire. */
export function applicationDefault(
  env: Environment = process.env,
  wanted: WantedToken = 'accessToken',
): Renewed<AccessToken> {
  const sources = [namedFile, wellKnownFile, metadataToken].map(
    (source): TokenSource =>
      (found) =>
        source(found, wanted),
  )
  return new Renewed(() => firstFound(sources, env))
}

/** Returns the tokens of a credential file. `label` names it in messages. */
export const tokensOfFile = (
  text: string,
  label: string,
  wanted: WantedToken,
): Renewed<AccessToken> => new Renewed(() => tokenOfFile(text, label, wanted))
