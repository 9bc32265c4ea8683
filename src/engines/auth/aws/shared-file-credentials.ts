import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { CredentialSource } from '../access-token.ts'
import type { AwsCredentials } from './signature.ts'

type Profile = Readonly<Record<string, string>>

/**
 * Reads the keys of a profile (`AWS_PROFILE`, otherwise `default`) from `~/.aws/credentials` and
 * `~/.aws/config`; the credentials file wins. It is an error if the profile has no keys but names a
 * role, a process or single sign-on.
 */
export const sharedFileCredentials: CredentialSource<AwsCredentials> = async (env) => {
  const name = env.AWS_PROFILE || 'default'
  const folder = join(env.HOME || homedir(), '.aws')
  const config = await readSections(env.AWS_CONFIG_FILE || join(folder, 'config'))
  const keys = await readSections(env.AWS_SHARED_CREDENTIALS_FILE || join(folder, 'credentials'))
  const section = name === 'default' ? name : `profile ${name}`
  const profile: Profile = { ...config.get(section), ...keys.get(name) }
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = profile
  if (accessKeyId && secretAccessKey) {
    return { accessKeyId, secretAccessKey, sessionToken: profile.aws_session_token || undefined }
  }
  const unsupported = ['role_arn', 'credential_process', 'sso_session', 'sso_start_url'].find(
    (field) => profile[field] !== undefined,
  )
  if (unsupported !== undefined) {
    throw new Error(`${unsupported} of the AWS profile ${name} is not supported; give keys`)
  }
  if (env.AWS_PROFILE)
    throw new Error(
      `AWS profile ${name} not found or without keys; set aws_access_key_id and aws_secret_access_key`,
    )
  return undefined
}

/** Reads the sections of an INI file; returns an empty map if the file cannot be read. */
async function readSections(path: string): Promise<ReadonlyMap<string, Profile>> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const sections = new Map<string, Record<string, string>>()
  let section: Record<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    const heading = /^\s*\[\s*([^\]]+?)\s*\]/.exec(line)?.[1]
    if (heading !== undefined) {
      section = sections.get(heading) ?? {}
      sections.set(heading, section)
      continue
    }
    // Indented lines do not match: they belong to nested settings.
    const setting = /^([A-Za-z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (setting?.[1] !== undefined && section !== undefined) {
      section[setting[1].toLowerCase()] = setting[2] ?? ''
    }
  }
  return sections
}
