/** Real certificates for tests, made by the openssl command line. */
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type KeyType = 'ec' | 'rsa'

/** A certificate chain and its key, in PEM. */
export interface Certificate {
  readonly certificate: string
  readonly key: string
  /** SHA-256 of the leaf, as `getPeerCertificate().fingerprint256` gives it. */
  readonly fingerprint: string
}

/** A certificate authority that signs leaves; trust `certificate` in clients. */
export class Authority {
  readonly certificate: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-ca-'))
  #count = 0

  constructor() {
    const subject = ['-subj', '/CN=Sluice test authority', '-days', '3650']
    this.#openssl(
      'req',
      '-x509',
      ...newKey('ec'),
      ...subject,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
    )
    this.certificate = this.#read('ca.crt')
  }

  /** A leaf for DNS names, addresses or URIs, the first of which is the subject. */
  issue(names: readonly string[], type: KeyType = 'ec'): Certificate {
    const name = `leaf-${++this.#count}`
    const [key, request, leaf, extensions] = ['key', 'csr', 'crt', 'ext'].map((e) => `${name}.${e}`)
    // A slash would begin another part of the subject.
    const subject = ['-subj', `/CN=${names[0]?.replaceAll('/', ' ')}`]
    this.#openssl('req', ...newKey(type), ...subject, '-keyout', `${key}`, '-out', `${request}`)
    const alternatives = names.map(alternative).join(',')
    writeFileSync(join(this.#folder, `${extensions}`), `subjectAltName=${alternatives}\n`)
    const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '3650']
    const files = ['-in', `${request}`, '-extfile', `${extensions}`, '-out', `${leaf}`]
    this.#openssl('x509', '-req', ...signer, ...files)
    const certificate = this.#read(`${leaf}`)
    const fingerprint = new X509Certificate(certificate).fingerprint256
    return { certificate, key: this.#read(`${key}`), fingerprint }
  }

  dispose(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder, stdio: 'pipe' })
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder, file), 'utf8')
  }
}

function alternative(name: string): string {
  if (name.includes('://')) return `URI:${name}`
  return isIP(name) === 0 ? `DNS:${name}` : `IP:${name}`
}

function newKey(type: KeyType): string[] {
  const parameters = type === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : ['rsa:2048']
  return ['-newkey', ...parameters, '-nodes']
}
