import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../access-token.ts'
import type { CredentialSource } from './credential-source.ts'

type Profile = Readonly<Record<string, string>>

/**
 * Keys of a profile (`AWS_PROFILE`, else `default`) in `~/.aws/credentials` and `~/.aws/config`;
 * the first of them wins. Profiles that name a role, a process or single sign-on are refused rather
 * than passed over.
 */
export const sharedFileCredentials: CredentialSource = async (env) => {
  const name = env.AWS_PROFILE || 'default'
  const profile = { ...(await configProfile(env, name)), ...(await credentialsProfile(env, name)) }
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = profile
  if (accessKeyId && secretAccessKey) {
    const sessionToken = profile.aws_session_token
    return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
  }
  const unsupported = ['role_arn', 'credential_process', 'sso_session', 'sso_start_url'].find(
    (field) => profile[field] !== undefined,
  )
  if (unsupported !== undefined) {
    throw new Error(`${unsupported} of the AWS profile ${name} is not supported; give keys`)
  }
  if (env.AWS_PROFILE) throw new Error(`the AWS profile ${name} has no keys`)
  return undefined
}

async function credentialsProfile(env: Environment, name: string): Promise<Profile> {
  const path = env.AWS_SHARED_CREDENTIALS_FILE || join(home(env), '.aws', 'credentials')
  return (await read(path)).get(name) ?? {}
}

async function configProfile(env: Environment, name: string): Promise<Profile> {
  const path = env.AWS_CONFIG_FILE || join(home(env), '.aws', 'config')
  return (await read(path)).get(name === 'default' ? name : `profile ${name}`) ?? {}
}

const home = (env: Environment): string => env.HOME || homedir()

/** Sections of an INI file; none where there is no file. */
async function read(path: string): Promise<ReadonlyMap<string, Profile>> {
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
    // Indented lines belong to nested settings.
    const setting = /^([A-Za-z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (setting?.[1] !== undefined && section !== undefined) {
      section[setting[1].toLowerCase()] = setting[2] ?? ''
    }
  }
  return sections
}
