import { onExchangeEnd } from '../../../ground/exchange/cleanup.ts'
import {
  type Callouts,
  type Exchange,
  next,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import { takeResponse } from '../../../ground/exchange/interruption.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import { takeOver } from '../../../ground/exchange/take-over.ts'
import type { PolicyApply } from '../define.ts'
import { BodyLedger } from './body-ledger.ts'
import { type ExtProcConfig, shape } from './config.ts'
import { ContextExpressions } from './context.ts'
import { isOwnAnswer, sendRequest, sendResponse } from './converse.ts'
import { allOfExchange, bodyModes, type ExchangeModes } from './modes.ts'
import { Observation } from './observation.ts'
import { Processing, responseIn } from './processing.ts'

/** Numbers the policies, so that those of both phases store their conversations under different keys. */
let policies = 0

const stepName = 'traffic.extProc'

const apply: PolicyApply<ExtProcConfig> = {
  shape,
  bind(config, callouts) {
    const extension = `extProc.${policies++}`
    if (config.observes === true) return observing(config, callouts, extension)
    const processor = new Processor(config, callouts, extension)
    return {
      onRequest: (exchange) => processor.processRequest(exchange),
      onResponse(exchange) {
        const processing = exchange.extensions.get(extension) as Processing | undefined
        if (processing === undefined || isOwnAnswer(exchange) || processing.hasPassed) return
        return processor.processResponse(exchange, processing)
      },
    }
  },
}

export default apply

function modesOf({ modes }: ExtProcConfig): ExchangeModes {
  if (modes === undefined) return allOfExchange
  const { request, response, allowsOverride } = modes
  return {
    request: { ...request, body: bodyModes[request.body] },
    response: { ...response, body: bodyModes[response.body] },
    allowsOverride,
  }
}

function observing(config: ExtProcConfig, callouts: Callouts, extension: string) {
  const { target, timeoutMs } = config
  const modes = modesOf(config)
  const context = new ContextExpressions(config)
  return {
    async onRequest(exchange: Exchange): Promise<Verdict> {
      const ofRequest = await context.ofRequest(exchange)
      const observation = new Observation({ target, exchange, callouts, modes, timeoutMs })
      exchange.extensions.set(extension, observation)
      onExchangeEnd(exchange, () => observation.close())
      observation.request(ofRequest)
      return next
    },
    onResponse(exchange: Exchange): void {
      const observation = exchange.extensions.get(extension) as Observation | undefined
      if (observation !== undefined && !isOwnAnswer(exchange)) {
        observation.response(context.ofResponse(exchange))
      }
    },
  }
}

class Processor {
  readonly #config: ExtProcConfig
  readonly #callouts: Callouts
  readonly #extension: string
  readonly #modes: ExchangeModes
  readonly #context: ContextExpressions

  constructor(config: ExtProcConfig, callouts: Callouts, extension: string) {
    this.#config = config
    this.#callouts = callouts
    this.#extension = extension
    this.#modes = modesOf(config)
    this.#context = new ContextExpressions(config)
  }

  async processRequest(exchange: Exchange): Promise<Verdict> {
    const context = await this.#context.ofRequest(exchange)
    const processing = this.#converse(exchange)
    try {
      await sendRequest(exchange, processing, context)
      // The connection to the processor may have failed right after its answer.
      processing.requireIntact()
    } catch (error) {
      const response = responseIn(error)
      if (response !== undefined) {
        takeResponse(exchange)
        return response
      }
      this.#continueWithout(exchange, processing, 'request', error)
    }
    return next
  }

  #converse(exchange: Exchange): Processing {
    const { learned, bufferLimit } = exchange
    const { target, timeoutMs, failsOpen } = this.#config
    const processing = new Processing({
      target,
      exchange,
      callouts: this.#callouts,
      modes: this.#modes,
      timeoutMs,
      learn: (metadata) => {
        learned.extproc = { ...learned.extproc, ...metadata }
      },
    })
    if (failsOpen === true) {
      processing.request.ledger = new BodyLedger(bufferLimit)
      processing.response.ledger = new BodyLedger(bufferLimit)
    }
    exchange.extensions.set(this.#extension, processing)
    onExchangeEnd(exchange, () => processing.close())
    return processing
  }

  async processResponse(exchange: Exchange, processing: Processing): Promise<void> {
    try {
      await sendResponse(exchange, processing, this.#context.ofResponse(exchange))
    } catch (error) {
      const response = responseIn(error)
      if (response !== undefined) {
        takeResponse(exchange)
        takeOver(exchange, response, stepName)
        return
      }
      this.#continueWithout(exchange, processing, 'response', error)
    }
  }

  /**
   * Continues if the policy fails open and the message is unchanged. Otherwise throws the error: if the processor has
   * changed a part of a body, the rest cannot pass unchanged.
   */
  #continueWithout(
    exchange: Exchange,
    processing: Processing,
    name: 'request' | 'response',
    error: unknown,
  ): void {
    if (this.#config.failsOpen !== true || !processing.hasFailed(error)) throw error
    if (!processing[name].continueAlone()) throw error
    addNote(exchange, stepName, `continues without the processor (FailOpen): ${messageOf(error)}`)
    processing.close()
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '')
