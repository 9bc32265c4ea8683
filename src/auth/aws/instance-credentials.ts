import { fetchText } from '../fetch-text.ts'
import type { CredentialSource } from './credential-source.ts'
import { parseCredentials } from './fetch-credentials.ts'

const what = 'the metadata service of the instance'
/** Where there is no such service, nobody answers. */
const firstWaitMs = 1_000

/**
 * The role of an EC2 instance, by IMDSv2. `AWS_EC2_METADATA_DISABLED=true` leaves it out;
 * `AWS_EC2_METADATA_SERVICE_ENDPOINT` is another place for it. A machine without one has no
 * credentials there.
 */
export const instanceCredentials: CredentialSource = async (env) => {
  if (env.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true') return undefined
  const given = env.AWS_EC2_METADATA_SERVICE_ENDPOINT
  const base = (given || 'http://169.254.169.254').replace(/\/$/, '')
  const lifetime = { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' }
  const asked = { method: 'PUT', headers: lifetime }
  let token: string
  try {
    token = await fetchText(what, `${base}/latest/api/token`, asked, firstWaitMs)
  } catch (error) {
    // Whoever names a place means it.
    if (given) throw error
    return undefined
  }
  const headers = { 'x-aws-ec2-metadata-token': token }
  const path = `${base}/latest/meta-data/iam/security-credentials/`
  const [role = ''] = (await fetchText(what, path, { headers })).trim().split('\n')
  if (role === '') throw new Error('the instance has no role')
  return parseCredentials(
    what,
    await fetchText(what, `${path}${encodeURIComponent(role)}`, { headers }),
  )
}
