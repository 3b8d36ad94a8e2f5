package model

// Classes are all classes, for whoever reads one from outside.
func Classes() []Class {
	return []Class{
		RateLimited, Overloaded, Timeout, Network, Truncated, Auth, Quota, InvalidRequest, ContextLength,
		ContentFilter, ModelOutput, ReplyTooLarge, NoProvider, Unknown,
	}
}
