/** Steps that read variables. */
import { CelError, isCelError } from './error.ts'
import type { Activation, Step } from './frame.ts'
import { gatewayVariables } from './gateway-variables.ts'
import { type CelResult, CelView } from './value.ts'

/** Reads a variable. One that is not set is null if it is declared, otherwise an error of kind `missing`. */
export function variableStep(name: string, isDeclared: boolean): Step {
  const unset = isDeclared ? null : new CelError('missing', `there is no variable ${name}`)
  return (frame) => {
    const value = frame.activation.lookup(name)
    return value === undefined ? unset : value
  }
}

/** `variables()` returns all variables that are set, as one map. */
export function variablesStep(): Step {
  return (frame) => new VariablesView(frame.activation)
}

class VariablesView extends CelView {
  readonly #activation: Activation

  constructor(activation: Activation) {
    super()
    this.#activation = activation
  }

  override field(name: string): CelResult | undefined {
    return this.#activation.lookup(name)
  }

  override fieldNames(): readonly string[] {
    const names = this.#activation.names?.() ?? [...gatewayVariables.keys()]
    return names.filter((name) => {
      const value = this.field(name)
      return value !== undefined && !isCelError(value)
    })
  }
}

/** Creates an activation from plain data: own properties of the record are the variables. */
export function activationOf(record: Readonly<Record<string, CelResult>>): Activation {
  return {
    lookup: (name) => (Object.hasOwn(record, name) ? record[name] : undefined),
    names: () => Object.keys(record),
  }
}
