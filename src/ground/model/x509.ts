/** Reads certificates by Node. Bundles for browsers have `certificate-browser.ts` in place of this file. */
import { X509Certificate } from 'node:crypto'

/** Returns whether a PEM block is a certificate that can be read. */
export function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}
