/** Arguments of tools as records have them: masked, and short. */
import { maskTexts } from '../../../../../engines/messages/mask/parts-masker.ts'
import { isRegex, type PlacedGuard } from '../../../ai/policy/bind-guard.ts'

/** Maximum length in characters. */
const maxLength = 4_096

/**
 * Returns arguments as JSON, masked by all regex guards whatever their action. Names of members and numbers are masked,
 * too.
 */
export function recordedArguments(guards: readonly PlacedGuard[], args: unknown): string {
  const masks = guards.flatMap(({ guard }) => (isRegex(guard) ? [guard.mask] : []))
  const masked = (text: string): string =>
    masks.reduce((left, mask) => maskTexts(mask, [left], () => {}).texts[0] ?? '', text)
  const json = JSON.stringify(maskedValue(args ?? {}, masked))
  return json.length <= maxLength ? json : `${json.slice(0, maxLength)}…`
}

function maskedValue(value: unknown, masked: (text: string) => string): unknown {
  if (typeof value === 'string') return masked(value)
  if (typeof value === 'number') {
    const text = masked(String(value))
    return text === String(value) ? value : text
  }
  if (Array.isArray(value)) return value.map((one) => maskedValue(one, masked))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [masked(key), maskedValue(one, masked)]),
  )
}
