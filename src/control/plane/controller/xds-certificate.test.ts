import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { Authority } from '../../../../test/support/certificates.ts'
import { servedCertificate } from './xds-certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-xds-'))
const authority = new Authority()
afterAll(() => {
  authority.dispose()
  rmSync(folder, { recursive: true, force: true })
})

it('an error about the xDS certificate names the Secret, the folder and the missing file', () => {
  const served = () => servedCertificate(folder, () => undefined)
  const { certificate, key } = authority.issue(['127.0.0.1'])
  expect(served).toThrow(`the Secret sluice-xds-cert with tls.crt, tls.key and ca.crt at ${folder}`)
  expect(served).toThrow('ca.crt')
  writeFileSync(join(folder, 'ca.crt'), authority.certificate)
  expect(served).toThrow('tls.crt')
  writeFileSync(join(folder, 'tls.crt'), certificate)
  writeFileSync(join(folder, 'tls.key'), key)
  expect(served().current().certificate).toBe(certificate)
})
