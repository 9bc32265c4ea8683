/** The columns of `kubectl get`. */
import type { PrinterColumn } from './kind.ts'

export const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created.',
  jsonPath: '.metadata.creationTimestamp',
}

export const conditionColumn = (
  name: string,
  path: string,
  description: string,
): PrinterColumn => ({
  name,
  type: 'string',
  description,
  jsonPath: `${path}[?(@.type=="${name}")].status`,
})

/** Why the object is not accepted, or `Accepted`. */
export const reasonColumn = (path: string): PrinterColumn => ({
  name: 'Reason',
  type: 'string',
  description: 'Why it is accepted or not.',
  jsonPath: `${path}[?(@.type=="Accepted")].reason`,
})
