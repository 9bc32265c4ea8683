/** Reads consumers with their credentials and groups. */
import { createHash, createPublicKey } from 'node:crypto'
import type { Conversion, Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { addSecret } from '../targets.ts'

interface Consumer {
  readonly name: string
  readonly groups: readonly string[]
  readonly field: SourceField
}

interface Credential {
  readonly consumer: Consumer
  readonly field: SourceField
}

/** The consumers of a configuration. Their Secrets are created when a plugin needs them. */
export class Consumers {
  readonly #consumers: readonly Consumer[]
  readonly #byName: ReadonlyMap<string, Consumer>
  /** The credentials of each kind, which every route with a plugin for them needs. */
  readonly #credentialsOf = new Map<string, readonly Credential[]>()
  #providers: Fields[] | undefined
  /** The user names of each group. */
  #usersOf: ReadonlyMap<string, readonly string[]> | undefined
  readonly #root: SourceField
  readonly #result: Conversion
  readonly #made = new Map<string, { name: string }>()

  constructor(root: SourceField, result: Conversion) {
    this.#root = root
    this.#result = result
    this.#consumers = root.items('consumers').map((field) => {
      field.ignore('id', 'tags', 'created_at', 'custom_id')
      const name = field.text('username') ?? field.text('custom_id') ?? ''
      const groups = field.items('acls').flatMap((acl) => acl.text('group') ?? [])
      for (const plugin of field.items('plugins')) {
        plugin.refuse('protection', 'plugins of one consumer are not converted')
      }
      return { name, groups, field }
    })
    this.#byName = new Map(this.#consumers.map((consumer) => [consumer.name, consumer]))
  }

  #credentials(kind: string): readonly Credential[] {
    const known = this.#credentialsOf.get(kind) ?? this.#readCredentials(kind)
    this.#credentialsOf.set(kind, known)
    return known
  }

  #readCredentials(kind: string): Credential[] {
    const nested = this.#consumers.flatMap((consumer) =>
      consumer.field.items(kind).map((field) => ({ consumer, field })),
    )
    const others = this.#root.items(kind).flatMap((field) => {
      const owner = field.text('consumer')
      const consumer = owner === undefined ? undefined : this.#byName.get(owner)
      return consumer === undefined ? [] : [{ consumer, field }]
    })
    return [...nested, ...others]
  }

  #once(name: string, make: () => Readonly<Record<string, string>>): { name: string } {
    const known = this.#made.get(name)
    if (known !== undefined) return known
    const entries = make()
    const made = addSecret(this.#result, name, entries, this.#root)
    this.#made.set(name, made)
    return made
  }

  /** The Secret with the API keys of all consumers; each has the name and the groups of its consumer. */
  apiKeys(): { name: string } {
    return this.#once('consumer-keys', () => {
      const entries = this.#credentials('keyauth_credentials').map(({ consumer, field }, index) => {
        const { name: username, groups } = consumer
        field.ignore('id', 'tags', 'ttl', 'created_at')
        const key = field.text('key') ?? ''
        field.get('key').report('secret', 'the key is now in Secret consumer-keys')
        const id = `${username.replace(/[^A-Za-z0-9._-]/g, '-')}.${index}`
        return [id, JSON.stringify({ key, metadata: { username, groups } })] as const
      })
      return Object.fromEntries(entries)
    })
  }

  /** The Secret with the users and password hashes of all consumers. */
  passwords(): { name: string } {
    return this.#once('consumer-passwords', () => {
      const lines = this.#credentials('basicauth_credentials').flatMap(({ field }) => {
        field.ignore('id', 'tags', 'created_at')
        const user = field.text('username') ?? ''
        const password = field.get('password')
        if (field.flag('skip_hash') === true || user.includes(':')) {
          field.report('lost', 'the user is refused: a hash of Kong, or a colon in the name')
          password.take()
          return []
        }
        const reason =
          'the SHA-1 hash of the password is now in Secret consumer-passwords; bcrypt is better'
        password.report('secret', reason)
        const hash = createHash('sha1')
          .update(password.text() ?? '')
          .digest('base64')
        return [`${user}:{SHA}${hash}`]
      })
      return { '.htaccess': lines.join('\n') }
    })
  }

  /** Providers for the tokens of consumers that have a public key. */
  tokenProviders(): Fields[] {
    this.#providers ??= this.#readProviders()
    return this.#providers
  }

  #readProviders(): Fields[] {
    return this.#credentials('jwt_secrets').flatMap(({ field }) => {
      field.ignore('id', 'tags', 'created_at')
      const issuer = field.text('key')
      const algorithm = field.text('algorithm') ?? 'HS256'
      const pem = field.text('rsa_public_key')
      field.take('secret')
      if (issuer === undefined || pem === undefined || algorithm.startsWith('HS')) {
        field.report('lost', 'tokens with a shared secret are refused; use a public key')
        return []
      }
      try {
        const key = createPublicKey(pem).export({ format: 'jwk' })
        return [
          { issuer, jwks: { inline: JSON.stringify({ keys: [{ ...key, alg: algorithm }] }) } },
        ]
      } catch {
        field.get('rsa_public_key').report('lost', 'is not a public key; its tokens are refused')
        return []
      }
    })
  }

  /** The user names whose consumer belongs to one of the groups, or has one of the names. */
  usersIn(groups: readonly string[]): string[] {
    this.#usersOf ??= this.#usersByGroup()
    const users = groups.flatMap((group) => this.#usersOf?.get(group) ?? [])
    return [...new Set(users)]
  }

  #usersByGroup(): ReadonlyMap<string, readonly string[]> {
    const pairs = this.#credentials('basicauth_credentials').flatMap(({ consumer, field }) => {
      const user = field.text('username')
      return user === undefined ? [] : consumer.groups.map((group) => ({ group, user }))
    })
    const byGroup = Map.groupBy(pairs, ({ group }) => group)
    return new Map([...byGroup].map(([group, list]) => [group, list.map(({ user }) => user)]))
  }
}
