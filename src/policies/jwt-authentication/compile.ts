import { parseKeySet } from '../../auth/jwt/key-set.ts'
import type { JwtProvider } from '../../auth/jwt/verifier.ts'
import type { References } from '../../model/references.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { JwtAuthenticationConfig } from './config.ts'
import { type FoundKeys, fetchedKeys, usable } from './keys.ts'
import type { JwtAuthenticationSpec } from './schema.ts'

type ProviderSpec = JwtAuthenticationSpec['providers'][number]

/**
 * A provider without usable keys stays, and nothing is believed of it; the others work. The policy
 * is always in force: Strict refuses everyone where no provider has a key, and the status says why.
 */
export function compile(
  { mode = 'Strict', providers }: JwtAuthenticationSpec,
  references: References,
): Compiled<JwtAuthenticationConfig> {
  const problems: PolicyProblem[] = []
  const notes: string[] = []
  const compiled = providers.map(({ issuer, audiences, jwks }, index): JwtProvider => {
    const path = `providers[${index}].jwks.${jwks.remote === undefined ? 'inline' : 'remote'}`
    const { keys, failure, pending, skipped = [] } = findKeys(jwks, references)
    if (failure !== undefined) {
      const message = `${failure}; no token of ${issuer} is accepted`
      problems.push({ path, message, ...(providers.length > 1 && { partial: true }) })
    }
    if (pending !== undefined) notes.push(`${path}: ${pending}`)
    for (const message of skipped) problems.push({ path, message, partial: true })
    return { issuer, ...(audiences && { audiences }), keys }
  })
  const isUsable = notes.length > 0 || compiled.some(({ keys }) => keys.length > 0)
  if (!isUsable && providers.length > 1) {
    problems.push({ path: 'providers', message: 'none has a key; no token is accepted' })
  }
  return { config: { mode, providers: compiled }, problems, notes, protects: true }
}

function findKeys({ inline, remote }: ProviderSpec['jwks'], references: References): FoundKeys {
  if (remote !== undefined) return fetchedKeys(remote, references)
  return usable(parseKeySet(inline ?? ''), 'the key set')
}
