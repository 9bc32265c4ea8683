import { maxJsonDepth, parseJson } from './parse.ts'
import { JsonScanner } from './scanner.ts'

const scanner = new JsonScanner({ names: 'unique', maxDepth: maxJsonDepth })

/**
 * Parses the response of a service that decides about a message; undefined if it is not JSON, or if an object in it
 * has a name twice: another reader could find another decision.
 */
export function parseDecision(text: string): unknown {
  const isUnambiguous = scanner.scanText(text)
  scanner.release()
  return isUnambiguous ? parseJson(text) : undefined
}
