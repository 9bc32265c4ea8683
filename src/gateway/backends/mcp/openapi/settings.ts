/** What users choose about the operations of a document. */

/** An operation is selected if it has one of each list that is set. */
interface OperationSelector {
  readonly tags?: readonly string[]
  /** Beginnings of path templates, in whole segments. */
  readonly pathPrefixes?: readonly string[]
  readonly methods?: readonly string[]
  /** Values of `operationId`. */
  readonly operations?: readonly string[]
}

interface OpenApiSettings {
  /** All operations if omitted. */
  readonly include?: readonly OperationSelector[]
  readonly exclude?: readonly OperationSelector[]
  readonly tools?: readonly {
    readonly operation: string
    readonly name?: string
    readonly description?: string
  }[]
  /** Bytes of a result that the model gets. */
  readonly maxResultBytes?: number
  /** Maximum number of pages of a result that are joined; 1 if omitted. */
  readonly maxPages?: number
  /** Whether tools have output schemas. */
  readonly hasOutputSchemas?: boolean
}

/** A document with the settings, as proxies receive it: JSON. */
export interface OpenApiSource extends OpenApiSettings {
  readonly document: unknown
  /** Documents to which `$ref` may lead, by the names that it has for them. */
  readonly references?: Readonly<Record<string, unknown>>
}

interface SelectableOperation {
  readonly tags: readonly string[]
  readonly path: string
  readonly method: string
  readonly id: string | undefined
}

export function isSelected(
  { include, exclude = [] }: OpenApiSettings,
  operation: SelectableOperation,
): boolean {
  if (exclude.some((one) => matches(one, operation))) return false
  return include === undefined || include.some((one) => matches(one, operation))
}

function matches(
  { tags, pathPrefixes, methods, operations }: OperationSelector,
  operation: SelectableOperation,
): boolean {
  const { path, method, id } = operation
  return (
    (tags?.some((one) => operation.tags.includes(one)) ?? true) &&
    (pathPrefixes?.some((one) => isBelow(path, one)) ?? true) &&
    (methods?.some((one) => one.toUpperCase() === method) ?? true) &&
    (operations?.some((one) => one === id) ?? true)
  )
}

function isBelow(path: string, prefix: string): boolean {
  const whole = prefix.replace(/\/+$/, '')
  return path === whole || path.startsWith(`${whole}/`)
}
