/** Namespaces that a test makes for itself. */
import { execFileSync } from 'node:child_process'

/** Does the system let this user run a command in such namespaces (options of unshare)? */
export function canUnshare(options: readonly string[], command: readonly string[]): boolean {
  try {
    execFileSync('unshare', [...options, ...command], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
