// Signs the checksums of a release with an SSH key, so that users can verify every file with ssh-keygen.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/** Keeps a signature of something else from counting as one of a release. */
const namespace = 'sluice-release'

/**
 * Writes SHA256SUMS.sig next to SHA256SUMS. The same Ed25519 key always gives the same signature.
 *
 * @param {string} folder
 * @param {string} key file of a private key, or of a public key whose private key an agent holds
 */
export function signChecksums(folder, key) {
  const { status, stderr, error } = spawnSync(
    'ssh-keygen',
    ['-Y', 'sign', '-n', namespace, '-f', key, join(folder, 'SHA256SUMS')],
    { encoding: 'utf8', stdio: ['inherit', 'ignore', 'pipe'] },
  )
  if (error !== undefined) throw new Error(`ssh-keygen: ${error.message}`)
  if (status !== 0) throw new Error(`SHA256SUMS was not signed: ${stderr.trim()}`)
}
