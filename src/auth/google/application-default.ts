/**
 * Where Google credentials come from when nobody has given any ("application default credentials"):
 *
 *   GOOGLE_APPLICATION_CREDENTIALS -> the file that gcloud writes -> the metadata server
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type AccessToken, type Environment, firstToken } from '../access-token.ts'
import { Renewed } from '../renewed.ts'
import { tokenOfFile } from './credential-file.ts'
import { metadataToken } from './metadata-token.ts'

async function namedFile({
  GOOGLE_APPLICATION_CREDENTIALS: path,
}: Environment): Promise<AccessToken | undefined> {
  if (!path) return undefined
  const text = await readFile(path, 'utf8').catch((cause) => {
    throw new Error(`GOOGLE_APPLICATION_CREDENTIALS: ${path} cannot be read`, { cause })
  })
  return tokenOfFile(text, path)
}

async function wellKnownFile(env: Environment): Promise<AccessToken | undefined> {
  const folder = env.CLOUDSDK_CONFIG || join(env.HOME || homedir(), '.config', 'gcloud')
  const path = join(folder, 'application_default_credentials.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : tokenOfFile(text, path)
}

/** The token of this process, kept and renewed before it ends. */
export function applicationDefault(env: Environment = process.env): Renewed<AccessToken> {
  return new Renewed(() => firstToken([namedFile, wellKnownFile, metadataToken], env))
}
