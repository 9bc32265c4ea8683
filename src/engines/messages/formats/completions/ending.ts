/** The ends of choices. */
import { stringAt } from '../../json/json.ts'

/**
 * Returns the reason why a choice has ended; undefined if it has not. Some servers write an empty one, or "null", until
 * then.
 */
export function finishReasonOf(choice: unknown): string | undefined {
  const reason = stringAt(choice, 'finish_reason')
  return reason === '' || reason === 'null' ? undefined : reason
}

export const isFinished = (choice: unknown): boolean => finishReasonOf(choice) !== undefined
