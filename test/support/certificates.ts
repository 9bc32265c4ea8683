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

export interface Lifetime {
  /** When a certificate ends, to the second. */
  readonly notAfter?: Date
}

/** A certificate authority that signs leaves; trust `certificate` in clients. */
export class Authority {
  readonly certificate: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-ca-'))
  #count = 0

  /** `notAfter`: the end of the authority itself, to the second; ten years from now if omitted. */
  constructor({ notAfter }: Lifetime = {}) {
    const subject = ['-subj', '/CN=Sluice test authority']
    const request = ['req', ...newKey('ec'), ...subject, '-keyout', 'ca.key']
    if (notAfter === undefined) {
      this.#openssl(...request, '-x509', '-days', '3650', '-out', 'ca.crt')
    } else {
      this.#openssl(...request, '-out', 'ca.csr')
      writeFileSync(join(this.#folder, 'ca.ext'), 'basicConstraints=critical,CA:true\n')
      this.#sign('ca', ['-selfsign'], notAfter)
    }
    this.certificate = this.#read('ca.crt')
  }

  /** A leaf for DNS names, addresses or URIs, the first of which is the subject. */
  issue(names: readonly string[], type: KeyType = 'ec', { notAfter }: Lifetime = {}): Certificate {
    const name = `leaf-${++this.#count}`
    const [key, request, leaf, extensions] = ['key', 'csr', 'crt', 'ext'].map((e) => `${name}.${e}`)
    // A slash would begin another part of the subject.
    const subject = ['-subj', `/CN=${names[0]?.replaceAll('/', ' ')}`]
    this.#openssl('req', ...newKey(type), ...subject, '-keyout', `${key}`, '-out', `${request}`)
    const alternatives = names.map(alternative).join(',')
    writeFileSync(join(this.#folder, `${extensions}`), `subjectAltName=${alternatives}\n`)
    if (notAfter === undefined) {
      const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '3650']
      const files = ['-in', `${request}`, '-extfile', `${extensions}`, '-out', `${leaf}`]
      this.#openssl('x509', '-req', ...signer, ...files)
    } else this.#sign(name, ['-cert', 'ca.crt'], notAfter)
    const certificate = this.#read(`${leaf}`)
    const fingerprint = new X509Certificate(certificate).fingerprint256
    return { certificate, key: this.#read(`${key}`), fingerprint }
  }

  /** Signs `name.csr` with an end to the second, which `openssl x509` cannot say before 3.4. */
  #sign(name: string, signer: readonly string[], notAfter: Date): void {
    writeFileSync(join(this.#folder, 'issued.txt'), '')
    writeFileSync(join(this.#folder, 'ca.cnf'), issuing)
    const end = notAfter.toISOString().replace(/[-:T]|\..*(?=Z)/g, '')
    const files = ['-in', `${name}.csr`, '-extfile', `${name}.ext`, '-out', `${name}.crt`]
    const how = ['-batch', '-notext', '-rand_serial', '-enddate', end, '-config', 'ca.cnf']
    this.#openssl('ca', ...how, ...signer, '-keyfile', 'ca.key', ...files)
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

/** The least that `openssl ca` wants. */
const issuing = `[ca]
default_ca=own
[own]
database=issued.txt
new_certs_dir=.
serial=serial.txt
default_md=sha256
policy=names
[names]
commonName=supplied
`

function alternative(name: string): string {
  if (name.includes('://')) return `URI:${name}`
  return isIP(name) === 0 ? `DNS:${name}` : `IP:${name}`
}

function newKey(type: KeyType): string[] {
  const parameters = type === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : ['rsa:2048']
  return ['-newkey', ...parameters, '-nodes']
}
