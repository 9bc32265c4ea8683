import type { PinState } from '../../control/actors/pin.ts'
import { objectText } from '../../ground/model/names.ts'

/** Says what a pin holds, since when, and why. */
export function pinText({ to, since, until, only, author, reason }: PinState): string {
  const what = only === undefined ? 'the configuration' : only.map(objectText).join(', ')
  const end = until === undefined ? '' : ` until ${until}`
  return `held: ${what} of position ${to}, since ${since}${end} (${author}: ${reason})`
}
