import { fetchToken, type TokenSource } from '../access-token.ts'
import { cloudScope } from './credential-file.ts'

const what = 'the metadata server'
/** Where there is no such server, nobody answers. */
const firstWaitMs = 1_000

/**
 * The service account of a machine, pod or function. `GCE_METADATA_HOST` is another place for the
 * server; `NO_GCE_CHECK=true` leaves it out.
 */
export const metadataToken: TokenSource = async (env) => {
  if (env.NO_GCE_CHECK?.toLowerCase() === 'true') return undefined
  const given = env.GCE_METADATA_HOST || env.GCE_METADATA_IP
  const base = `http://${given || '169.254.169.254'}/computeMetadata/v1/instance`
  const url = `${base}/service-accounts/default/token?scopes=${encodeURIComponent(cloudScope)}`
  const headers = { 'metadata-flavor': 'Google' }
  try {
    return await fetchToken(what, url, { headers }, given ? undefined : firstWaitMs)
  } catch (error) {
    // Whoever names a place means it.
    if (given) throw error
    return undefined
  }
}
