/** What browsers run in place of Node's modules gives the same results. */
import { X509Certificate } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Authority } from '../../../test/support/certificates.ts'
import fc from '../../../test/support/fast-check.ts'
import { isCertificate } from '../model/x509.ts'
import * as certificateBrowser from '../model/x509-browser.ts'
import { hexDigest, sha256 } from './digest.ts'
import * as digestBrowser from './digest-browser.ts'
import { isIpv4, isIpv6 } from './ip-address.ts'

describe('digests in browsers', () => {
  it('equal those of Node for texts and bytes', () => {
    const content = fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 300 }))
    const algorithm = fc.constantFrom('md5', 'sha1', 'sha256')
    fc.assert(
      fc.property(algorithm, content, (name, value) => {
        expect(digestBrowser.hexDigest(name, value)).toBe(hexDigest(name, value))
        expect([...digestBrowser.sha256(value)]).toEqual([...sha256(value)])
      }),
    )
    expect(hexDigest('sha256', '\ud800')).toBe(digestBrowser.hexDigest('sha256', '\ud800'))
  })
})

describe('IP addresses', () => {
  const group = fc.constantFrom('0', '1', 'ff', '12345', 'g', '', 'FFFF', '1.2.3.4', '256.1.1.1')
  const texts = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV6().map((text) => `${text}%eth0`),
    fc.array(group, { maxLength: 9 }).map((groups) => groups.join(':')),
    fc.array(fc.integer({ min: -1, max: 300 }), { maxLength: 5 }).map((parts) => parts.join('.')),
    fc.constantFrom('::', '::%', '1::%a%b', '::1%a/b', '::1.2.3.4', '1.2.3.4::', ':::', '01.2.3.4'),
    fc.string(),
  )

  it('are recognized exactly as by Node', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect([text, isIpv4(text), isIpv6(text)]).toEqual([text, isIPv4(text), isIPv6(text)])
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('certificates in browsers', () => {
  const authority = new Authority()
  const issued = [authority.certificate, authority.issue(['a.example', '*.b.example']).certificate]
  authority.dispose()
  const pemOf = (bytes: Uint8Array) =>
    `-----BEGIN CERTIFICATE-----\n${Buffer.from(bytes).toString('base64')}\n-----END CERTIFICATE-----`
  const both = (pem: string) => [isCertificate(pem), certificateBrowser.isCertificate(pem)]

  it('are accepted if they are whole', () => {
    for (const pem of issued) expect(both(pem)).toEqual([true, true])
  })

  it('are rejected if they are cut, not base64 or something else', () => {
    const bytes = new X509Certificate(issued[0] ?? '').raw
    for (const length of [0, 1, 2, 4, 50, 200, bytes.length - 1]) {
      expect([length, ...both(pemOf(bytes.subarray(0, length)))]).toEqual([length, false, false])
    }
    for (const text of ['', 'x', pemOf(Buffer.from('text')), pemOf(bytes).replace('MII', '*')]) {
      expect([text, ...both(text)]).toEqual([text, false, false])
    }
  })

  it('are judged as by Node if the tag or length of any element is another', () => {
    const bytes = new X509Certificate(issued[1] ?? '').raw
    const differing: string[] = []
    for (let at = 0; at < bytes.length; at++) {
      for (const bits of [0x01, 0x02, 0x20, 0x80, 0xff]) {
        const changed = Uint8Array.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ bits
        const [node, browser] = both(pemOf(changed))
        if (node !== browser) differing.push(`byte ${at} xor ${bits}`)
      }
    }
    expect(differing).toEqual([])
  })
})
