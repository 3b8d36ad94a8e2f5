// Types that the comments of the console use: those of the API come from its OpenAPI document.
import type { components, paths } from "./openapi";

/** A path as it is asked: its parameters are any text. */
type Asked<Path> = Path extends `${infer Before}{${string}}${infer After}` ? `${Before}${string}${Asked<After>}` : Path;

/** What is asked beside the API. */
type Own = { "/console/sign-in": { post: { responses: { 200: { content: { "application/json": components["schemas"]["Caller"] } } } } }; "/console/sign-out": { post: { responses: object } } };

type Operations = paths & Own;

/** The operation's path in the document. */
type PathOf<Path extends string> = { [P in keyof Operations]: [Path] extends [Asked<P>] ? ([Asked<P>] extends [Path] ? P : never) : never }[keyof Operations];

type Body<Response> = Response extends { content: { "application/json": infer B } } ? B : never;
type Good<Responses> = Body<{ [Code in keyof Responses]: Code extends 200 | 201 | 202 ? Responses[Code] : never }[keyof Responses]>;
type Operation<Path extends string, Method extends string> = Lowercase<Method> extends keyof Operations[PathOf<Path>] ? Operations[PathOf<Path>][Lowercase<Method>] : never;

declare global {
  /** The shapes of the API by their names in its document. */
  type API = components["schemas"];

  /** A path that the API has. What is put together from texts is not checked. */
  type Known<Path extends string> = string extends Path ? string : [PathOf<Path>] extends [never] ? "the API has no such path" : Path;

  /** What the API replies to a method of a path, such as `/v1/tasks/${string}`; any, if the path was put together from texts. */
  type Reply<Path extends string, Method extends string> = string extends Path ? any : Operation<Path, Method> extends { responses: infer R } ? Good<R> : never;

  /** The event of an input. */
  type Edited<E extends Element = HTMLInputElement> = Event & { target: E };
}
